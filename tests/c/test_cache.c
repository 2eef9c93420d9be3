/* build/cache: what is stored comes back; what was damaged, is foreign or half written never does;
 * unusable disks; locks; plans; the size limit; memory failure. */
#define _GNU_SOURCE
#include "../../csrc/base/mem.h"
#include "../../csrc/build/cache.h"

#include "t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char top[64];                    /* everything happens in here */
static const BuildRun no_limits;

static const char *
at(const char *name)
{
    static char path[4][300];
    static int turn;
    char *p = path[turn++ % 4];

    snprintf(p, 300, "%s/%s", top, name);
    return p;
}

static void
open_cache(BuildCache *c, const char *dir)
{
    CcStatus st;

    T_CHECK(build_cache_open(c, dir, 0, "test", &st));
}

static BuildKey
key_of(const BuildCache *c, const char *text)
{
    BuildKeyMaker m;

    build_key_init(&m, c, BUILD_OBJECT);
    build_key_text(&m, text);
    return build_key_end(&m);
}

static void
path_of(const BuildCache *c, const BuildKey *key, char path[300])
{
    char hex[CC_SHA256_HEX];

    cc_sha256_hex(key->byte, hex);
    snprintf(path, 300, "%s/o-%s", c->dir, hex);
}

static bool
has(BuildCache *c, const char *text, const char *want)
{
    BuildKey key = key_of(c, text);
    size_t size;
    char *got = build_cache_get(c, BUILD_OBJECT, &key, &size);
    bool same = got != NULL && size == strlen(want) && memcmp(got, want, size) == 0;

    cc_free(got);
    return same;
}

static bool
put(BuildCache *c, const char *text, const char *payload)
{
    BuildKey key = key_of(c, text);

    return build_cache_put(c, BUILD_OBJECT, &key, payload, strlen(payload));
}

static int
files_in(const char *dir)
{
    DIR *list = opendir(dir);
    int n = 0;

    for (struct dirent *e; list != NULL && (e = readdir(list)) != NULL;) {
        n += e->d_name[0] != '.' && strncmp(e->d_name, "lock-", 5) != 0;
    }
    if (list != NULL) {
        closedir(list);
    }
    return n;
}

/* -- Entries ------------------------------------------------------------------------------ */

static void
test_put_and_get(void)
{
    BuildCache c, again;
    size_t size;

    open_cache(&c, at("a/b/cache"));
    T_CHECK(c.why.reason == CC_REASON_NONE && !c.own);
    T_CHECK(!has(&c, "x", "payload") && c.count.misses == 1);
    T_CHECK(put(&c, "x", "payload") && has(&c, "x", "payload"));
    T_CHECK(put(&c, "x", "other") && has(&c, "x", "other"));
    T_CHECK(put(&c, "empty", "") && has(&c, "empty", ""));
    T_CHECK(!has(&c, "y", "other"));
    BuildKey key = key_of(&c, "x");
    T_CHECK(build_cache_get(&c, BUILD_PLAN, &key, &size) == NULL);      /* another kind */
    open_cache(&again, at("a/b/cache"));
    T_CHECK(has(&again, "x", "other") && again.count.hits == 1);
    build_cache_drop(&again, BUILD_OBJECT, &key);
    T_CHECK(!has(&c, "x", "other") && c.count.damaged == 0);
    T_CHECK(files_in(c.dir) == 1);      /* "empty", and no temporary file */
    build_cache_close(&again);
    build_cache_close(&c);
}

static void
test_keys_depend_on_every_part(void)
{
    BuildCache c, other;
    BuildKeyMaker m;
    CcStatus st;

    open_cache(&c, at("keys"));
    T_CHECK(build_cache_open(&other, at("keys"), 0, "test2", &st));
    BuildKey a = key_of(&c, "x"), b = key_of(&other, "x"), d = key_of(&c, "x");
    T_CHECK(memcmp(&a, &b, sizeof(a)) != 0 && memcmp(&a, &d, sizeof(a)) == 0);
    build_key_init(&m, &c, BUILD_PLAN);
    build_key_text(&m, "x");
    b = build_key_end(&m);
    T_CHECK(memcmp(&a, &b, sizeof(a)) != 0);
    build_key_init(&m, &c, BUILD_OBJECT);
    build_key_text(&m, "ab");
    build_key_text(&m, "c");
    a = build_key_end(&m);
    build_key_init(&m, &c, BUILD_OBJECT);
    build_key_text(&m, "a");
    build_key_text(&m, "bc");
    b = build_key_end(&m);
    T_CHECK(memcmp(&a, &b, sizeof(a)) != 0);
    build_cache_close(&other);
    build_cache_close(&c);
}

static void
test_every_damaged_byte_is_noticed(void)
{
    BuildCache c;
    char path[300];
    uint8_t byte;

    open_cache(&c, at("damage"));
    BuildKey key = key_of(&c, "x");
    path_of(&c, &key, path);
    for (off_t i = 0; i < (off_t)sizeof(BuildHeader) + 7; i++) {
        T_CHECK(put(&c, "x", "payload"));
        int fd = open(path, O_RDWR);
        T_CHECK(pread(fd, &byte, 1, i) == 1);
        byte ^= (uint8_t)(1 << i % 8);
        T_CHECK(pwrite(fd, &byte, 1, i) == 1 && close(fd) == 0);
        T_CHECK(!has(&c, "x", "payload"));
        T_CHECK(access(path, F_OK) != 0);       /* removed, not looked at again */
    }
    T_CHECK(c.count.damaged == sizeof(BuildHeader) + 7);
    build_cache_close(&c);
}

static void
test_cut_grown_and_renamed_files(void)
{
    BuildCache c;
    char path[300], other[300];

    open_cache(&c, at("cut"));
    BuildKey key = key_of(&c, "x"), key2 = key_of(&c, "y");
    path_of(&c, &key, path);
    path_of(&c, &key2, other);
    for (off_t size = 0; size < (off_t)sizeof(BuildHeader) + 12; size++) {
        T_CHECK(put(&c, "x", "payload") && truncate(path, size) == 0);
        T_CHECK(has(&c, "x", "payload") == (size == (off_t)sizeof(BuildHeader) + 7));
    }
    T_CHECK(put(&c, "x", "payload") && rename(path, other) == 0);
    T_CHECK(!has(&c, "y", "payload") && access(other, F_OK) != 0);
    build_cache_close(&c);
}

static void
test_untrusted_files(void)
{
    BuildCache c;
    char path[300];

    open_cache(&c, at("trust"));
    BuildKey key = key_of(&c, "x");
    path_of(&c, &key, path);
    static const mode_t bad[] = {0620, 0602, 0666, 0777};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_CHECK(put(&c, "x", "p") && chmod(path, bad[i]) == 0);
        T_CHECK(!has(&c, "x", "p") && access(path, F_OK) != 0);
    }
    T_CHECK(put(&c, "x", "p") && chmod(path, 0644) == 0 && has(&c, "x", "p"));
    T_CHECK(rename(path, at("elsewhere")) == 0 && symlink(at("elsewhere"), path) == 0);
    T_CHECK(!has(&c, "x", "p"));        /* the right bytes, but through a link */
    T_CHECK(access(at("elsewhere"), F_OK) == 0 && access(path, F_OK) != 0);
    T_CHECK(mkfifo(path, 0600) == 0);
    T_CHECK(!has(&c, "x", "p"));        /* and does not wait for a writer */
    T_CHECK(mkdir(path, 0700) == 0 && !has(&c, "x", "p") && !put(&c, "x", "p"));
    T_CHECK(rmdir(path) == 0);
    if (geteuid() == 0) {               /* only root can make a foreign file */
        T_CHECK(put(&c, "x", "p") && chown(path, 12345, (gid_t)-1) == 0 && !has(&c, "x", "p"));
    }
    build_cache_close(&c);
}

/* -- Directories -------------------------------------------------------------------------------- */

/* The cache falls back to a private directory, works there, and removes it. */
static void
check_unsafe(const char *dir, const char *said)
{
    BuildCache c;

    open_cache(&c, dir);
    T_CHECK(c.why.reason == CC_REASON_CACHE_UNSAFE && strstr(c.why.detail, said) != NULL);
    T_CHECK(c.own && put(&c, "x", "p") && has(&c, "x", "p"));
    char *copy = strdup(c.dir);
    T_CHECK(strncmp(copy, top, strlen(top)) == 0);      /* $TMPDIR */
    build_cache_close(&c);
    T_CHECK(access(copy, F_OK) != 0);
    free(copy);
}

static void
test_unsafe_directories(void)
{
    T_CHECK(mkdir(at("wide"), 0700) == 0 && chmod(at("wide"), 0755) == 0);
    check_unsafe(at("wide"), "mode 755");
    T_CHECK(chmod(at("wide"), 0720) == 0);
    check_unsafe(at("wide"), "mode 720");
    T_CHECK(mkdir(at("real"), 0700) == 0 && symlink(at("real"), at("link")) == 0);
    check_unsafe(at("link"), "link");
    check_unsafe(at("link/"), "link");
    T_CHECK(close(open(at("plain"), O_CREAT | O_WRONLY, 0600)) == 0);
    check_unsafe(at("plain"), "");
    check_unsafe(at("plain/sub"), "");
    T_CHECK(files_in(at("real")) == 0 && files_in(at("wide")) == 0);
    if (geteuid() == 0) {
        T_CHECK(mkdir(at("foreign"), 0700) == 0 && chown(at("foreign"), 12345, 12345) == 0);
        check_unsafe(at("foreign"), "another user");
    }
}

static void
check_place(const char *want)
{
    BuildCache c;

    open_cache(&c, NULL);
    T_CHECK(want == NULL ? c.own : strcmp(c.dir, want) == 0);
    build_cache_close(&c);
}

static void
test_choice_of_the_directory(void)
{
    char here[300], want[600];

    setenv("HOME", at("home"), 1);
    setenv("XDG_CACHE_HOME", at("xdg"), 1);
    setenv("CCOMPILE_CACHE_DIR", at("ours"), 1);
    check_place(at("ours"));
    T_CHECK(getcwd(here, sizeof(here)) != NULL && chdir(top) == 0);
    setenv("CCOMPILE_CACHE_DIR", "relative/dir", 1);
    snprintf(want, sizeof(want), "%s/relative/dir", top);
    check_place(want);
    T_CHECK(chdir(here) == 0);
    setenv("CCOMPILE_CACHE_DIR", "", 1);
    check_place(at("xdg/ccompile"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    check_place(at("home/.cache/ccompile"));
    unsetenv("HOME");
    check_place(NULL);
}

static void
test_no_directory_at_all(void)
{
    BuildCache c = {.fd = -1, .build_id = (char *)"test"};
    int lock;
    CcStatus st;

    T_CHECK(!put(&c, "x", "p") && c.count.failed == 1);
    T_CHECK(!has(&c, "x", "p") && c.count.misses == 1);
    T_CHECK(build_lock_take(&c, 1, &no_limits, &lock, &st) && lock == -1);
}

static void
test_a_forked_child_removes_nothing(void)
{
    BuildCache c;
    int status = -1;

    open_cache(&c, at("plain"));
    T_CHECK(c.own && put(&c, "x", "p"));
    pid_t pid = fork();
    if (pid == 0) {
        build_cache_close(&c);
        _exit(0);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid && status == 0 && has(&c, "x", "p"));
    build_cache_close(&c);
}

/* -- Disks that do not take it ----------------------------------------------------------------------- */

static void
test_file_size_limit(void)
{
    BuildCache c;
    struct rlimit before, tight;

    open_cache(&c, at("limit"));
    signal(SIGXFSZ, SIG_IGN);           /* as Python does */
    getrlimit(RLIMIT_FSIZE, &before);
    for (rlim_t size = 0; size < sizeof(BuildHeader) + 9; size += 13) {
        tight = before;
        tight.rlim_cur = size;
        setrlimit(RLIMIT_FSIZE, &tight);
        bool stored = put(&c, "x", "payload");
        setrlimit(RLIMIT_FSIZE, &before);
        T_CHECK(stored == (size >= sizeof(BuildHeader) + 7));
        T_CHECK(has(&c, "x", "payload") == stored);
        T_CHECK(files_in(c.dir) == (stored ? 1 : 0));
    }
    T_CHECK(c.count.failed > 0);
    build_cache_close(&c);
}

/* A full and a read-only disk, where the test may mount one; the child is in its own mounts. */
static void
test_small_disk(void)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        static char big[100000];
        BuildCache c;
        T_CHECK(mkdir(at("disk"), 0700) == 0);
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", at("disk"), "tmpfs", 0, "size=64k,mode=700") != 0) {
            _exit(0);                   /* not allowed here: the size limit above has to do */
        }
        open_cache(&c, at("disk"));
        memset(big, 'x', sizeof(big) - 1);
        T_CHECK(!c.own && !put(&c, "x", big) && c.count.failed == 1 && files_in(c.dir) == 0);
        T_CHECK(put(&c, "x", "small") && has(&c, "x", "small"));
        T_CHECK(mount("none", at("disk"), "tmpfs", MS_REMOUNT | MS_RDONLY, "mode=700") == 0);
        T_CHECK(has(&c, "x", "small") && !put(&c, "y", "small") && c.count.failed == 2);
        int lock;
        CcStatus st;
        T_CHECK(build_lock_take(&c, 1, &no_limits, &lock, &st) && lock == -1);
        build_cache_close(&c);
        fflush(stdout);
        _exit(t_failed != 0);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* -- Locks, races ------------------------------------------------------------------------------------- */

static bool
at_once(void *ctx)
{
    return ++*(int *)ctx > 2;
}

static void
test_locks(void)
{
    BuildCache c;
    CcStatus st = {CC_REASON_NONE, ""};
    int first, second, asked = 0;
    BuildRun impatient = {.interrupted = at_once, .ctx = &asked}, brief = {.seconds = 0.1};

    open_cache(&c, at("locks"));
    T_CHECK(build_lock_take(&c, 5, &no_limits, &first, &st) && first >= 0);
    T_CHECK(build_lock_take(&c, 6, &no_limits, &second, &st) && second >= 0);
    build_lock_drop(second);
    T_CHECK(build_lock_take(&c, 5, &brief, &second, &st) && second == -1);
    T_CHECK(!build_lock_take(&c, 5, &impatient, &second, &st));
    T_CHECK(st.reason == CC_REASON_INTERRUPTED && second == -1 && asked == 3);
    pid_t pid = fork();                 /* its copy of the descriptor must not keep the lock */
    if (pid == 0) {
        sleep(30);
        _exit(0);
    }
    build_lock_drop(first);
    T_CHECK(build_lock_take(&c, 5, &brief, &second, &st) && second >= 0);
    build_lock_drop(second);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    build_cache_close(&c);
}

/* Writers and readers of the same names at the same time: a reader sees nothing or all. */
static void
test_processes_race(void)
{
    static char payload[2][30000];
    pid_t pid[4];

    memset(payload[0], 'a', sizeof(payload[0]) - 1);
    memset(payload[1], 'b', sizeof(payload[1]) - 2000);
    for (int p = 0; p < 4; p++) {
        pid[p] = fork();
        if (pid[p] == 0) {
            BuildCache c;
            open_cache(&c, at("race"));
            BuildKey key = key_of(&c, "x");
            for (int i = 0; i < 300; i++) {
                size_t size;
                T_CHECK(put(&c, "x", payload[p % 2]));
                char *got = build_cache_get(&c, BUILD_OBJECT, &key, &size);
                const char *want = got != NULL && got[0] == 'a' ? payload[0] : payload[1];
                T_CHECK(got != NULL && size == strlen(want) && memcmp(got, want, size) == 0);
                cc_free(got);
            }
            T_CHECK(c.count.damaged == 0 && c.count.failed == 0);
            build_cache_close(&c);
            fflush(stdout);
            _exit(t_failed != 0);
        }
    }
    for (int p = 0; p < 4; p++) {
        int status = -1;
        T_CHECK(waitpid(pid[p], &status, 0) == pid[p] && status == 0);
    }
    T_CHECK(files_in(at("race")) == 1);
}

/* -- Plans, size limit, memory -------------------------------------------------------------------------- */

static void
test_plans(void)
{
    BuildCache c;
    BuildPlan plan, got;
    BuildKey objects[3], key;
    uint8_t blob[] = "the plan";

    open_cache(&c, at("plans"));
    for (int i = 0; i < 3; i++) {
        memset(&objects[i], i + 1, sizeof(objects[i]));
    }
    key = key_of(&c, "plan");
    T_CHECK(!build_plan_get(&c, &key, &got));
    for (uint32_t count = 0; count <= 3; count += 3) {
        plan = (BuildPlan){count, objects, count * 3, blob};
        T_CHECK(build_plan_put(&c, &key, &plan) && build_plan_get(&c, &key, &got));
        T_CHECK(got.count == count && got.size == count * 3);
        T_CHECK(memcmp(got.object, objects, count * sizeof(BuildKey)) == 0);
        T_CHECK(memcmp(got.blob, blob, got.size) == 0);
        build_plan_fini(&got);
    }
    static const uint32_t lies[][2] = {{1000000, 0}, {0, 1}, {0xffffffff, 0xffffffff}};
    for (int i = 0; i < 3; i++) {       /* right hash, wrong numbers inside */
        T_CHECK(build_cache_put(&c, BUILD_PLAN, &key, lies[i], 8));
        T_CHECK(!build_plan_get(&c, &key, &got) && got.object == NULL);
    }
    T_CHECK(build_cache_put(&c, BUILD_PLAN, &key, lies, 5) && !build_plan_get(&c, &key, &got));
    build_cache_close(&c);
}

static void
set_age(const char *path, time_t seconds)
{
    struct timespec when[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};

    T_CHECK(utimensat(AT_FDCWD, path, when, 0) == 0);
}

static void
test_size_limit(void)
{
    static char payload[1000];
    BuildCache c;
    char path[300], name[16];
    CcStatus st;

    memset(payload, 'x', sizeof(payload) - sizeof(BuildHeader));       /* a file of 1000 bytes */
    payload[sizeof(payload) - sizeof(BuildHeader)] = '\0';
    T_CHECK(build_cache_open(&c, at("lru"), 10000, "test", &st));
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%d", i);
        T_CHECK(put(&c, name, payload));
        BuildKey key = key_of(&c, name);
        path_of(&c, &key, path);
        set_age(path, 20000 - 1000 * i);
    }
    T_CHECK(c.count.evicted == 0);
    T_CHECK(has(&c, "0", payload));     /* the hit makes it the youngest */
    snprintf(path, sizeof(path), "%s/t-1-1", c.dir);
    T_CHECK(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
    set_age(path, 5000);
    snprintf(path, sizeof(path), "%s/t-1-2", c.dir);
    T_CHECK(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
    T_CHECK(put(&c, "10", payload));    /* 11000 > 10000: down to 8000, the oldest go */
    T_CHECK(c.count.evicted == 3 && has(&c, "0", payload) && has(&c, "10", payload));
    T_CHECK(!has(&c, "1", payload) && !has(&c, "2", payload) && !has(&c, "3", payload));
    T_CHECK(has(&c, "4", payload) && files_in(c.dir) == 9);     /* the fresh t- file stays */
    build_cache_close(&c);
}

static void
test_work_directories(void)
{
    BuildCache c;
    unsigned place = 0;
    char *dir, path[400];
    int n = 0;

    open_cache(&c, at("work"));
    while ((dir = build_work_make(&c, &place)) != NULL) {
        struct stat info;
        T_CHECK(stat(dir, &info) == 0 && (info.st_mode & 0777) == 0700);
        snprintf(path, sizeof(path), "%s/file", dir);
        T_CHECK(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
        build_work_remove(dir);
        T_CHECK(access(dir, F_OK) != 0);
        cc_free(dir);
        n++;
    }
    T_CHECK(n >= 3);                    /* $TMPDIR, /tmp, the cache; /dev/shm where it exists */
    build_cache_close(&c);
}

static void
test_memory_failure(void)
{
    bool whole = false;

    for (long n = 0; n < 60 && !whole; n++) {
        BuildCache c;
        BuildPlan plan = {0, NULL, 3, (uint8_t *)"abc"}, got;
        CcStatus st = {CC_REASON_NONE, ""};
        cc_mem_fail_after(n);
        if (build_cache_open(&c, at("memory"), 1, "test", &st)) {
            BuildKey key = key_of(&c, "x");
            bool stored = build_plan_put(&c, &key, &plan);
            bool read = build_plan_get(&c, &key, &got);
            T_CHECK(!read || (stored && memcmp(got.blob, "abc", 3) == 0));
            build_plan_fini(&got);
            build_cache_sweep(&c);
            cc_mem_fail_after(-1);
            whole = stored && read && !c.own;
            build_cache_drop(&c, BUILD_PLAN, &key);
            build_cache_close(&c);
        } else {
            T_CHECK(st.reason == CC_REASON_NO_MEMORY && cc_mem_failed());
        }
    }
    cc_mem_fail_after(-1);
    T_CHECK(whole);
}

int
main(void)
{
    char command[80];

    alarm(120);
    strcpy(top, "/tmp/cccacheXXXXXX");
    T_CHECK(mkdtemp(top) != NULL);
    setenv("TMPDIR", top, 1);
    test_put_and_get();
    test_keys_depend_on_every_part();
    test_every_damaged_byte_is_noticed();
    test_cut_grown_and_renamed_files();
    test_untrusted_files();
    test_unsafe_directories();
    test_choice_of_the_directory();
    test_no_directory_at_all();
    test_a_forked_child_removes_nothing();
    test_file_size_limit();
    test_small_disk();
    test_locks();
    test_processes_race();
    test_plans();
    test_size_limit();
    test_work_directories();
    test_memory_failure();
    snprintf(command, sizeof(command), "rm -r %s", top);
    T_CHECK(system(command) == 0);
    return t_failed != 0;
}
