/* kern/conv_t.h - convolution and its gradients for one float type at one ISA level. A template.
 *
 * Forward and input gradient are one problem: slide a window over an input I, weights packed as
 * [group][panel][kh][kw][ic][NR], into an output O. The input gradient is the convolution of y's
 * gradient with flipped weights, in stride_h * stride_w interleaved parts.
 *
 * A task is a block of output rows of one image (or a few whole small images). It brings the input
 * it needs into its scratch, halo included, in one of two forms, and runs the micro-kernel on it:
 *
 *   rows    NHWC with its halo; a window row is one contiguous run of kw * ic steps of k (ic steps
 *           when the dilation is not 1), so a tile is `nseg` runs. For ic >= 8 or so.
 *   cols    [k][position]: each step of k is a shifted copy of the rows, k-major. For short k
 *           (first layers) and for small images, where a tile must span rows.
 *
 * Where the output has contiguous planes, cols form turns the tile (`planes`): the weights are
 * broadcast, vectors run along the positions, and the tile is the user's memory.
 *
 * In cols form, and for 1x1 windows in rows form (`flat`), the positions of a task are one long
 * row; else tiles stay inside output rows. The weight gradient uses the same packed input as the
 * broadcast operand with rows and k exchanged: rows = window elements, k = positions. It is
 * summed per `split` of the images (by sizes alone) and the splits are added in order. */
#ifndef CC_KERN_CONV_T_H
#define CC_KERN_CONV_T_H

#include "gemm_t.h"

#define CONV_KC 512                     /* steps of k per call of the micro-kernel */
#define CONV_INPUT (192 * 1024)         /* bytes of packed input per task */
#define CONV_TILE (16 * 1024)           /* bytes of finished tile per epilogue */
#define CONV_COLS_K 64                  /* windows of at most this many elements are `cols` */
#define CONV_COLS_W 8                   /* so are outputs narrower than this */
#define CONV_TASKS 16
#define CONV_SPLIT_BYTES (16 * 1024 * 1024)     /* of partial weight gradients */

/* -- Packing the input ---------------------------------------------------------------- */

/* ceil(a / b) for b > 0 and any a. */
static int64_t
conv_ceil(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static int64_t
conv_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
conv_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Row of the input behind row `row` of the zoomed, padded input; -1 = zeros. */
static int64_t
conv_source_row(const KernConv *c, int64_t row)
{
    int64_t at = row - c->p.top;

    return at < 0 || at % c->p.zoom_h != 0 || at / c->p.zoom_h >= c->p.in_h ? -1
                                                                           : at / c->p.zoom_h;
}

/* Rows form: block_h padded rows from `first` on into [row][block_w][ic]. */
static void
conv_pack_rows(const KernConv *c, const KT *in, int64_t first, int64_t rows, KT *dst)
{
    int64_t ic = c->p.ic, zoom = c->p.zoom_w, left = c->p.left;
    int64_t q0 = left >= 0 ? 0 : conv_ceil(-left, zoom);
    int64_t room = c->p.block_w - 1 - left;
    int64_t q1 = room < 0 ? q0 : conv_min(c->p.in_w, room / zoom + 1);
    int64_t begin = q0 * zoom + left, end = (q1 - 1) * zoom + left + 1;

    for (int64_t r = 0; r < rows; r++, dst += c->p.block_w * ic) {
        int64_t row = conv_source_row(c, first + r);

        if (row < 0 || q1 <= q0) {
            move_zero(dst, c->p.block_w * ic);
            continue;
        }
        if (zoom > 1) {
            move_zero(dst, c->p.block_w * ic);
        } else {
            move_zero(dst, begin * ic);
            move_zero(dst + end * ic, (c->p.block_w - end) * ic);
        }
        kern_move(dst + begin * ic, zoom * ic, 1, in + row * c->p.is[2] + q0 * c->p.is[3],
                  c->p.is[3], c->p.is[1], q1 - q0, ic);
    }
}

/* One row of outputs at window column kw: dst[ow] = row[ow * sw + kw * dil - left]. */
static void
conv_pack_shifted(const KernConv *c, const KT *row, int64_t kw, KT *dst)
{
    int64_t shift = kw * c->dil_w - c->p.left, sw = c->p.sw, step = sw * c->p.is[3];
    int64_t w0, w1;

    if (c->p.zoom_w > 1) {
        for (int64_t w = 0; w < c->p.out_w; w++) {
            int64_t at = w * sw + shift;
            bool real = at >= 0 && at % c->p.zoom_w == 0 && at / c->p.zoom_w < c->p.in_w;

            dst[w] = real ? row[at / c->p.zoom_w * c->p.is[3]] : 0;
        }
        return;
    }
    w0 = shift >= 0 ? 0 : conv_min(conv_ceil(-shift, sw), c->p.out_w);
    w1 = shift >= c->p.in_w ? w0 : conv_min((c->p.in_w - 1 - shift) / sw + 1, c->p.out_w);
    w1 = w1 < w0 ? w0 : w1;
    move_zero(dst, w0);
    if (step == 1) {
        move_run(dst + w0, row + w0 + shift, w1 - w0);
    } else {
        for (int64_t w = w0; w < w1; w++) {
            dst[w] = row[w * step + shift * c->p.is[3]];
        }
    }
    move_zero(dst + w1, c->p.out_w - w1);
}

/* Cols form: output rows oh0.. of one image into [k][line]. */
static void
conv_pack_cols(const KernConv *c, const KT *in, int64_t oh0, int64_t rows, KT *dst, int64_t line)
{
    for (int64_t k = 0; k < c->p.k; k++) {
        int64_t tap = k / c->p.ic, kh = tap / c->kw, kw = tap % c->kw;
        const KT *plane = in + k % c->p.ic * c->p.is[1];

        for (int64_t r = 0; r < rows; r++) {
            KT *to = dst + k * line + r * c->p.out_w;
            int64_t row = conv_source_row(c, (oh0 + r) * c->p.sh + kh * c->dil_h);

            if (row < 0) {
                move_zero(to, c->p.out_w);
            } else {
                conv_pack_shifted(c, plane + row * c->p.is[2], kw, to);
            }
        }
    }
}

/* -- A task's part of the problem ----------------------------------------------------- */

typedef struct {
    int64_t image, images, row, rows;   /* images image.., output rows row.. */
    int64_t positions;                  /* images * rows * out_w */
    int64_t line;                       /* cols form: elements from one k to the next */
    int64_t group;                      /* whose input is packed, -1 = none */
} ConvBlock;

static ConvBlock
conv_block(const KernConv *c, int64_t index)
{
    ConvBlock b = {.group = -1};

    b.image = index / c->p.row_blocks * c->p.images;
    b.images = conv_min(c->n - b.image, c->p.images);
    b.row = index % c->p.row_blocks * c->p.row_block;
    b.rows = conv_min(c->p.out_h - b.row, c->p.row_block);
    b.positions = b.images * b.rows * c->p.out_w;
    b.line = c->p.planes ? gemm_ceil(b.positions, KW) * KW : b.positions;
    return b;
}

/* Elements of packed input a block needs at most. */
static int64_t
conv_input_size(const KernConv *c, int64_t images, int64_t rows)
{
    if (c->p.cols) {
        return c->p.k * gemm_ceil(images * rows * c->p.out_w, KW) * KW;
    }
    return images * ((rows - 1) * c->p.sh + (c->kh - 1) * c->dil_h + 1) * c->p.block_w * c->p.ic;
}

static void
conv_pack_input(const KernConv *c, ConvBlock *b, int64_t group, const KT *in, KT *dst)
{
    int64_t rows = (b->rows - 1) * c->p.sh + (c->kh - 1) * c->dil_h + 1;

    if (b->group == group) {
        return;
    }
    b->group = group;
    for (int64_t i = 0; i < b->images; i++) {
        const KT *image = in + (b->image + i) * c->p.is[0] + group * c->p.ic * c->p.is[1];

        if (c->p.cols) {
            conv_pack_cols(c, image, b->row, b->rows, dst + i * b->rows * c->p.out_w, b->line);
        } else {
            conv_pack_rows(c, image, b->row * c->p.sh, rows,
                           dst + i * rows * c->p.block_w * c->p.ic);
        }
    }
    if (c->p.planes) {
        move_pad_cols(dst, b->line, c->p.k, b->positions, b->line);
    }
}

/* -- Packing the weights -------------------------------------------------------------- */

/* One panel: [kh][kw][ic][NR], channels past the last as copies. Scratch holds one more panel. */
static void
conv_pack_panel(const KernConv *c, int64_t panel, KT *dst, KT *turn)
{
    int64_t taps = c->kh * c->kw, ic = c->p.ic, o = panel % c->p.panels * UKR_NR;
    int64_t cols = conv_min(c->p.oc - o, UKR_NR);
    const KT *w = (const KT *)c->wt + c->p.k0 + panel / c->p.panels * c->p.kg + o * c->p.ko;
    bool plain = c->p.kw == 1 && c->p.kh == c->kw && c->p.ki == taps;

    if (plain && taps > 1) {            /* [oc][ic * taps] turned, then rows put in order */
        kern_move(turn, UKR_NR, 1, w, 1, c->p.ko, ic * taps, cols);
        for (int64_t t = 0; t < taps; t++) {
            for (int64_t i = 0; i < ic; i++) {
                move_run(dst + (t * ic + i) * UKR_NR, turn + (i * taps + t) * UKR_NR, cols);
            }
        }
    } else {
        for (int64_t t = 0; t < taps; t++) {
            kern_move(dst + t * ic * UKR_NR, UKR_NR, 1,
                      w + t / c->kw * c->p.kh + t % c->kw * c->p.kw, c->p.ki, c->p.ko, ic, cols);
        }
    }
    move_pad_cols(dst, UKR_NR, taps * ic, cols, UKR_NR);
}

static void
conv_pack_weights(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernConv *c = args;

    for (int64_t i = begin; i < end; i++) {
        conv_pack_panel(c, i, (KT *)c->shared + i * c->p.k * UKR_NR, scratch);
    }
}

/* -- Forward -------------------------------------------------------------------------- */

/* Rows of positions at `a` times one panel: all of k, in blocks of CONV_KC. */
static void
conv_positions(const KernConv *c, const KT *a, const int64_t *off, int64_t sam, int64_t sak,
               int64_t count, const KT *w, int64_t cols, KT *tile)
{
    const UkrFn *fn = ukr_fn[cols > KW];
    int64_t segs = c->p.run < CONV_KC ? CONV_KC / (c->p.run + (c->p.run == 0)) : 1;

    if (c->p.run == 0) {                /* no input channels */
        move_zero(tile, count * UKR_NR);
    }
    for (int64_t s = 0; s < c->p.nseg; s += segs) {
        for (int64_t r = 0; r < c->p.run; r += CONV_KC) {
            int64_t nseg = conv_min(c->p.nseg - s, segs), run = conv_min(c->p.run - r, CONV_KC);
            const KT *panel = w + (s * c->p.run + r) * UKR_NR;

            for (int64_t i = 0, mr; i < count; i += mr) {
                mr = ukr_rows(count - i);
                fn[mr - 1](nseg, run, a + i * sam + r * sak, off + s, sam, sak, panel, UKR_NR,
                           tile + i * UKR_NR, UKR_NR, s > 0 || r > 0);
            }
        }
    }
}

/* Output rows row.. of one image are final for the channels of a panel. */
static void
conv_epilogue(const KernConv *c, KT *out, KT *tile, int64_t image, int64_t row, int64_t rows,
              int64_t channel, int64_t cols)
{
    int64_t width = c->p.out_w;
    KT *to = out + image * c->p.os[0] + channel * c->p.os[1] + row * c->p.os[2];

    if (c->epi == KERN_EPI_HOOK) {
        c->hook(c->hook_ctx, tile, UKR_NR, (int64_t[4]){image, row, 0, channel}, rows * width,
                cols);
        return;
    }
    if (c->epi == KERN_EPI_BIAS || c->epi == KERN_EPI_BIAS_RELU) {
        gemm_bias(tile, UKR_NR, (const KT *)c->bias + channel, rows * width, cols,
                  c->epi == KERN_EPI_BIAS_RELU);
    }
    if (c->p.os[2] == width * c->p.os[3]) {
        width *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; r++) {
        kern_move(to + r * c->p.os[2], c->p.os[3], c->p.os[1], tile + r * width * UKR_NR, UKR_NR, 1,
                  width, cols);
    }
}

/* Channels i.. i + mr of a panel over all positions of a block, straight into the output. */
static void
conv_plane_rows(const KernConv *c, const ConvBlock *b, const KT *input, const KT *w, int64_t mr,
                KT *to, KT *tile)
{
    static const int64_t zero[1] = {0};

    for (int64_t j = 0; j < b->positions; j += UKR_NR) {
        int64_t cols = conv_min(b->positions - j, UKR_NR);
        bool whole = cols % KW == 0;
        KT *at = whole ? to + j : tile;
        UkrFn fn = ukr_fn[cols > KW][mr - 1];

        for (int64_t k = 0; k == 0 || k < c->p.k; k += CONV_KC) {
            fn(1, conv_min(c->p.k - k, CONV_KC), w + k * UKR_NR, zero, 1, UKR_NR,
               input + k * b->line + j, b->line, at, whole ? c->p.os[1] : UKR_NR, k > 0);
        }
        if (!whole) {
            kern_move(to + j, c->p.os[1], 1, tile, UKR_NR, 1, mr, cols);
        }
    }
}

/* One panel in planes form, bias and relu included. */
static void
conv_planes(const KernConv *c, const ConvBlock *b, const KT *input, const KT *w, KT *to,
            const KT *bias, int64_t cols, KT *tile)
{
    for (int64_t i = 0, mr; i < cols; i += mr) {
        mr = ukr_rows(cols - i);
        conv_plane_rows(c, b, input, w + i, mr, to + i * c->p.os[1], tile);
        for (int64_t r = i; c->epi != KERN_EPI_STORE && r < i + mr; r++) {
            KT *row = to + r * c->p.os[1];
            KV add = UKR_SPLAT(bias[r]);
            bool relu = c->epi == KERN_EPI_BIAS_RELU;
            int64_t j = 0;

            for (; j + KW <= b->positions; j += KW) {
                KV x = ukr_load(row + j) + add;

                ukr_store(row + j, relu ? ukr_relu(x) : x);
            }
            for (; j < b->positions; j++) {
                KT x = row[j] + bias[r];

                row[j] = relu && x < 0 ? 0 : x;
            }
        }
    }
}

/* One panel over the packed block. */
static void
conv_panel(const KernConv *c, const ConvBlock *b, const KT *input, const int64_t *off,
           int64_t panel, KT *out, KT *tile)
{
    const KT *w = (const KT *)c->shared + panel * c->p.k * UKR_NR;
    int64_t o = panel % c->p.panels * UKR_NR, cols = conv_min(c->p.oc - o, UKR_NR);
    int64_t channel = panel / c->p.panels * c->p.oc + o;
    int64_t width = c->p.out_w, line = c->p.block_w * c->p.ic;

    if (c->p.planes) {
        conv_planes(c, b, input, w,
                    out + b->image * c->p.os[0] + channel * c->p.os[1] + b->row * c->p.os[2],
                    c->epi == KERN_EPI_STORE ? NULL : (const KT *)c->bias + channel, cols, tile);
        return;
    }
    if (c->p.cols) {
        conv_positions(c, input, off, 1, b->line, b->positions, w, cols, tile);
        for (int64_t i = 0; i < b->images; i++) {
            conv_epilogue(c, out, tile + i * b->rows * width * UKR_NR, b->image + i, b->row,
                          b->rows, channel, cols);
        }
        return;
    }
    for (int64_t r = 0; r < b->rows; r += c->p.epi_rows) {
        int64_t rows = conv_min(b->rows - r, c->p.epi_rows);

        if (c->p.flat) {
            conv_positions(c, input + r * line, off, c->p.ic, 1, rows * width, w, cols, tile);
        } else {
            for (int64_t i = 0; i < rows; i++) {
                conv_positions(c, input + (r + i) * c->p.sh * line, off, c->p.sw * c->p.ic, 1,
                               width, w, cols, tile + i * width * UKR_NR);
            }
        }
        conv_epilogue(c, out, tile, b->image, b->row + r, rows, channel, cols);
    }
}

/* Where the runs of a window start in the packed rows. */
static void
conv_window(const KernConv *c, int64_t *off)
{
    int64_t line = c->p.block_w * c->p.ic;

    off[0] = 0;
    for (int64_t s = 0; s < c->p.nseg && !c->p.cols; s++) {
        int64_t kh = c->p.nseg == c->kh ? s : s / c->kw;
        int64_t kw = c->p.nseg == c->kh ? 0 : s % c->kw;

        off[s] = kh * c->dil_h * line + kw * c->dil_w * c->p.ic;
    }
}

static int64_t
conv_offsets_bytes(int64_t count)
{
    return gemm_round(count * (int64_t)sizeof(int64_t));
}

static int64_t
conv_input_bytes(const KernConv *c)
{
    return gemm_round(conv_input_size(c, c->p.images, c->p.row_block) * (int64_t)sizeof(KT));
}

static void
conv_run(const KernConv *c, const KT *in, KT *out, int64_t begin, int64_t end, char *scratch)
{
    int64_t *off = (int64_t *)scratch;
    KT *input = (KT *)(scratch + conv_offsets_bytes(c->p.nseg));
    KT *tile = (KT *)((char *)input + conv_input_bytes(c));
    int64_t total = c->groups * c->p.panels;

    conv_window(c, off);
    for (int64_t i = begin; i < end; i++) {
        ConvBlock b = conv_block(c, i / c->p.panel_groups);
        int64_t first = i % c->p.panel_groups * c->p.group_panels;
        int64_t last = conv_min(total, first + c->p.group_panels);

        for (int64_t panel = first; panel < last; panel++) {
            conv_pack_input(c, &b, panel / c->p.panels, in, input);
            conv_panel(c, &b, input, off, panel, out, tile);
        }
    }
}

static void
conv_run_forward(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernConv *c = args;

    conv_run(c, c->x, c->y, begin, end, scratch);
}

/* -- Weight gradient ------------------------------------------------------------------ */

/* Packed input times y's gradient of one panel and block, into (or onto) part [k][NR]. */
static void
conv_weights_block(const KernConv *c, const ConvBlock *b, const KT *input, const KT *dy,
                   int64_t *off, int64_t cols, KT *part, int add)
{
    const UkrFn *fn = ukr_fn[cols > KW];
    int64_t line = c->p.block_w * c->p.ic, sam = 1, sak = c->p.sw * c->p.ic;
    int64_t nseg = 1, run = b->positions, span = c->p.run;
    int64_t image = ((b->rows - 1) * c->p.sh + (c->kh - 1) * c->dil_h + 1) * line;

    off[0] = 0;
    if (c->p.cols) {
        sam = b->line;
        sak = 1;
    } else if (!c->p.flat) {
        nseg = b->images * b->rows;
        run = c->p.out_w;
        for (int64_t s = 0; s < nseg; s++) {
            off[s] = s / b->rows * image + s % b->rows * c->p.sh * line;
        }
    }
    for (int64_t s = 0; s < c->p.nseg; s++) {
        int64_t kh = c->p.nseg == c->kh ? s : s / c->kw;
        int64_t kw = c->p.nseg == c->kh ? 0 : s % c->kw;
        const KT *a = c->p.cols ? input : input + kh * c->dil_h * line + kw * c->dil_w * c->p.ic;

        for (int64_t i = 0, mr; i < span; i += mr) {
            mr = ukr_rows(span - i);
            fn[mr - 1](nseg, run, a + i * sam, off, sam, sak, dy, UKR_NR,
                       part + (s * span + i) * UKR_NR, UKR_NR, add);
        }
    }
}

/* y's gradient at the positions of a block: [position][NR]. */
static void
conv_pack_dy(const KernConv *c, const ConvBlock *b, int64_t panel, int64_t cols, KT *dst)
{
    int64_t channel = panel / c->p.panels * c->p.oc + panel % c->p.panels * UKR_NR;
    int64_t width = c->p.out_w;

    for (int64_t i = 0; i < b->images; i++) {
        for (int64_t r = 0; r < b->rows; r++, dst += width * UKR_NR) {
            const KT *src = (const KT *)c->y + (b->image + i) * c->ys[0] + channel * c->ys[1]
                          + (b->row + r) * c->ys[2];

            kern_move(dst, UKR_NR, 1, src, c->ys[3], c->ys[1], width, cols);
            move_pad_cols(dst, UKR_NR, width, cols, UKR_NR);
        }
    }
}

/* Unit = (split of the blocks, group of panels); its sums go to [split][panel][k][NR]. */
static void
conv_run_dw(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernConv *c = args;
    int64_t count = c->p.images * c->p.row_block, size = c->p.k * UKR_NR;
    int64_t *off = scratch;
    KT *input = (KT *)((char *)scratch + conv_offsets_bytes(count));
    KT *dy = (KT *)((char *)input + conv_input_bytes(c));
    int64_t total = c->groups * c->p.panels;
    int64_t blocks = (c->n + c->p.images - 1) / c->p.images * c->p.row_blocks;

    for (int64_t i = begin; i < end; i++) {
        int64_t split = i / c->p.panel_groups, first = i % c->p.panel_groups * c->p.group_panels;
        int64_t last = conv_min(total, first + c->p.group_panels);
        int64_t from = blocks * split / c->p.splits, to = blocks * (split + 1) / c->p.splits;
        KT *part = (KT *)c->shared + split * total * size;

        if (from == to) {
            move_zero(part + first * size, (last - first) * size);
        }
        for (int64_t block = from; block < to; block++) {
            ConvBlock b = conv_block(c, block);

            for (int64_t panel = first; panel < last; panel++) {
                int64_t cols = conv_min(c->p.oc - panel % c->p.panels * UKR_NR, UKR_NR);

                conv_pack_input(c, &b, panel / c->p.panels, c->x, input);
                conv_pack_dy(c, &b, panel, cols, dy);
                conv_weights_block(c, &b, input, dy, off, cols, part + panel * size, block > from);
            }
        }
    }
}

/* Add the splits, in order, and bring one window element of one panel into the user's strides. */
static void
conv_reduce_dw(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernConv *c = args;
    int64_t taps = c->kh * c->kw, size = c->p.ic * UKR_NR, total = c->groups * c->p.panels;
    KT *sum = scratch;

    for (int64_t i = begin; i < end; i++) {
        int64_t panel = i / taps, tap = i % taps, o = panel % c->p.panels * UKR_NR;
        const KT *part = (const KT *)c->shared + i * size;
        KT *w = (KT *)c->wt + c->p.k0 + panel / c->p.panels * c->p.kg + o * c->p.ko
              + tap / c->kw * c->p.kh + tap % c->kw * c->p.kw;

        move_run(sum, part, size);
        for (int64_t s = 1; s < c->p.splits; s++) {
            part += total * taps * size;
            for (int64_t j = 0; j < size; j += KW) {
                ukr_store(sum + j, ukr_load(sum + j) + ukr_load(part + j));
            }
        }
        kern_move(w, c->p.ki, c->p.ko, sum, UKR_NR, 1, c->p.ic, conv_min(c->p.oc - o, UKR_NR));
    }
}

/* -- Plans ---------------------------------------------------------------------------- */

static void
conv_orient_forward(KernConv *c)
{
    c->p.in_h = c->h, c->p.in_w = c->w;
    c->p.ic = c->c / c->groups, c->p.oc = c->oc / c->groups;
    c->p.out_h = kern_conv_out(c->h, c->kh, c->stride_h, c->dil_h, c->pad_top + c->pad_bottom);
    c->p.out_w = kern_conv_out(c->w, c->kw, c->stride_w, c->dil_w, c->pad_left + c->pad_right);
    c->p.zoom_h = c->p.zoom_w = 1;
    c->p.sh = c->stride_h, c->p.sw = c->stride_w;
    c->p.top = c->pad_top, c->p.left = c->pad_left;
    c->p.ko = c->ws[0], c->p.ki = c->ws[1], c->p.kh = c->ws[2], c->p.kw = c->ws[3];
    c->p.kg = c->p.oc * c->ws[0];
    c->p.k0 = 0;
    for (int i = 0; i < 4; i++) {
        c->p.is[i] = c->xs[i];
        c->p.os[i] = c->ys[i];
    }
}

/* One axis of a part of the input gradient, see conv_orient_dx. */
typedef struct {
    int64_t first, taps, before, size;  /* weights first, first + stride, ...; padding; outputs */
} ConvAxis;

static ConvAxis
conv_axis(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t part)
{
    ConvAxis a;

    a.first = ((part + pad) % stride + stride) % stride;
    a.taps = a.first < kernel ? gemm_ceil(kernel - a.first, stride) : 0;
    a.before = a.taps - 1 - (part + pad - a.first) / stride;
    a.size = size > part ? gemm_ceil(size - part, stride) : 0;
    return a;
}

/* The input gradient in parts: the rows h = part_h + i * stride_h of x, and columns alike, are a
 * convolution of stride 1 with every stride-th weight. Dilated windows are one part, which spreads
 * y's gradient out by zeros. */
static int64_t
conv_parts(const KernConv *c)
{
    return c->dil_h == 1 && c->dil_w == 1 ? c->stride_h * c->stride_w : 1;
}

static void
conv_orient_dx(KernConv *c, int64_t part)
{
    bool split = conv_parts(c) > 1;
    int64_t part_h = split ? part / c->stride_w : 0, part_w = split ? part % c->stride_w : 0;
    int64_t step_h = split ? c->stride_h : 1, step_w = split ? c->stride_w : 1;
    ConvAxis h = conv_axis(c->h, c->kh, step_h, c->pad_top, part_h);
    ConvAxis w = conv_axis(c->w, c->kw, step_w, c->pad_left, part_w);

    c->p.in_h = kern_conv_out(c->h, c->kh, c->stride_h, c->dil_h, c->pad_top + c->pad_bottom);
    c->p.in_w = kern_conv_out(c->w, c->kw, c->stride_w, c->dil_w, c->pad_left + c->pad_right);
    c->p.ic = c->oc / c->groups, c->p.oc = c->c / c->groups;
    c->p.out_h = h.size, c->p.out_w = w.size;
    c->p.zoom_h = split ? 1 : c->stride_h, c->p.zoom_w = split ? 1 : c->stride_w;
    c->p.sh = c->p.sw = 1;
    c->p.top = split ? h.before : (c->kh - 1) * c->dil_h - c->pad_top;
    c->p.left = split ? w.before : (c->kw - 1) * c->dil_w - c->pad_left;
    c->p.ko = c->ws[1], c->p.ki = c->ws[0];
    c->p.kh = -step_h * c->ws[2], c->p.kw = -step_w * c->ws[3];
    c->p.kg = c->p.ic * c->ws[0];
    c->p.k0 = (h.first + (h.taps - 1) * step_h) * c->ws[2]
            + (w.first + (w.taps - 1) * step_w) * c->ws[3];
    for (int i = 0; i < 4; i++) {
        c->p.is[i] = c->ys[i];
        c->p.os[i] = c->xs[i] * (i == 2 ? step_h : i == 3 ? step_w : 1);
    }
    c->x = c->x == NULL ? NULL : (KT *)c->x + part_h * c->xs[2] + part_w * c->xs[3];
    c->kh = h.taps, c->kw = w.taps;     /* a copy's: the phases see one part at a time */
}

/* The form of the packed input, and blocks of it that fit the caches. A block should have `want`
 * positions; `window`: forward or input gradient. */
static void
conv_cut(KernConv *c, int64_t want, bool window)
{
    bool point = c->kh == 1 && c->kw == 1 && c->p.sh == 1 && c->p.sw == 1;
    int64_t item = sizeof(KT), line, blocks, whole;

    c->p.k = c->kh * c->kw * c->p.ic;
    c->p.panels = gemm_ceil(c->p.oc, UKR_NR);
    c->p.block_w = conv_max((c->p.out_w - 1) * c->p.sw + (c->kw - 1) * c->dil_w + 1, 1);
    c->p.cols = !point && (c->p.k <= CONV_COLS_K || c->p.out_w < CONV_COLS_W);
    c->p.flat = !c->p.cols && point;
    whole = c->p.out_h * c->p.out_w;
    c->p.planes = window && c->p.cols && c->epi != KERN_EPI_HOOK && whole >= 2 * UKR_NR
               && c->p.os[3] == 1 && c->p.os[2] == c->p.out_w;
    c->p.nseg = c->p.cols ? 1 : c->dil_w == 1 ? c->kh : c->kh * c->kw;
    c->p.run = c->p.k / c->p.nseg;
    line = conv_max(c->p.out_w * UKR_NR * item, 1);
    c->p.epi_rows = line * 2 > CONV_TILE ? 1 : CONV_TILE / line;
    c->p.images = 1;
    c->p.row_block = conv_max(c->p.out_h, 1);
    while (c->p.row_block > 1
           && (conv_input_size(c, 1, c->p.row_block) * item > CONV_INPUT
               || (c->p.cols && !c->p.planes && c->p.row_block * line > CONV_TILE))) {
        c->p.row_block = gemm_ceil(c->p.row_block, 2);
    }
    if (c->p.cols && !c->p.planes && c->p.row_block == c->p.out_h && whole < want && whole > 0) {
        c->p.images = conv_max(conv_min(gemm_ceil(want, whole), gemm_ceil(c->n, 4)), 1);
        while (c->p.images > 1
               && conv_input_size(c, c->p.images, c->p.out_h) * item > CONV_INPUT) {
            c->p.images = gemm_ceil(c->p.images, 2);
        }
    }
    c->p.epi_rows = conv_min(c->p.epi_rows, c->p.row_block);
    c->p.row_blocks = gemm_ceil(c->p.out_h, c->p.row_block);
    blocks = gemm_ceil(c->n, c->p.images) * c->p.row_blocks;
    whole = c->groups * c->p.panels * c->p.k * UKR_NR * item;
    c->p.splits = conv_min(conv_min(blocks, CONV_TASKS), CONV_SPLIT_BYTES / conv_max(whole, 1));
    c->p.splits = conv_max(c->p.splits, 1);
    c->p.panel_groups = 1;
}

/* Share out the panels when there are fewer than CONV_TASKS `units` of other work. */
static void
conv_share_panels(KernConv *c, int64_t units)
{
    int64_t total = c->groups * c->p.panels;
    int64_t groups = units > 0 ? conv_min(total, CONV_TASKS / units) : 1;

    c->p.group_panels = gemm_ceil(total, groups < 1 ? 1 : groups);
    c->p.panel_groups = gemm_ceil(total, c->p.group_panels);
}

static int64_t
conv_tile_rows(const KernConv *c)
{
    if (c->p.planes) {
        return UKR_MR;
    }
    return (c->p.cols ? c->p.images * c->p.row_block : c->p.epi_rows) * c->p.out_w;
}

static bool
conv_empty(const KernConv *c)
{
    return c->n <= 0 || c->p.oc <= 0 || c->p.out_h <= 0 || c->p.out_w <= 0;
}

/* Cut an oriented problem; how many tasks it makes. */
static int64_t
conv_tasks(KernConv *c)
{
    int64_t blocks;

    conv_cut(c, 4 * UKR_MR, true);
    blocks = gemm_ceil(c->n, c->p.images) * c->p.row_blocks;
    conv_share_panels(c, blocks);
    return blocks * c->p.panel_groups;
}

/* Add an oriented and cut problem to the two phases of a plan. */
static void
conv_plan_add(const KernConv *c, KernPlan *plan, int64_t tasks)
{
    int64_t item = sizeof(KT), panels = c->groups * c->p.panels, panel = c->p.k * UKR_NR;
    double steps = (double)c->n * (double)(c->p.out_h * c->p.out_w) * (double)(panels * panel);
    CcPhase *pack = &plan->phase[0], *run = &plan->phase[1];

    plan->shared += (size_t)(panels * panel * item);
    pack->size += panels;
    pack->grain = conv_max(pack->grain, gemm_ceil(8192, panel + 1));
    pack->scratch = conv_max(pack->scratch, gemm_round(panel * item));
    pack->work += (double)(panels * panel) * 0.5;
    run->size += tasks;
    run->grain = 1;
    run->scratch = conv_max(run->scratch, conv_offsets_bytes(c->p.nseg) + conv_input_bytes(c)
                                              + gemm_round(conv_tile_rows(c) * UKR_NR * item));
    run->work += steps / (UKR_NR * 1.2);
}

static void
conv_plan(KernConv *c, KernPlan *plan)
{
    conv_orient_forward(c);
    *plan = (KernPlan){.nphase = 0};
    if (conv_empty(c)) {
        return;
    }
    plan->nphase = 2;
    plan->phase[0].fn = conv_pack_weights;
    plan->phase[1].fn = conv_run_forward;
    conv_plan_add(c, plan, conv_tasks(c));
}

/* A part of the input gradient, oriented and cut, and where its share of the phases begins. */
typedef struct {
    KernConv c;
    int64_t tasks, first_task, weights;
} ConvPart;

static void
conv_part(const KernConv *c, int64_t part, ConvPart *p)
{
    if (part > 0) {
        p->first_task += p->tasks;
        p->weights += p->c.groups * p->c.p.panels * p->c.p.k * UKR_NR;
    }
    p->c = *c;
    conv_orient_dx(&p->c, part);
    p->tasks = conv_tasks(&p->c);
    p->c.shared = c->shared == NULL ? NULL : (KT *)c->shared + p->weights;
}

static void
conv_pack_dx(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernConv *c = args;
    ConvPart p = {.tasks = 0};

    for (int64_t part = 0; part < conv_parts(c); part++) {
        int64_t total, first;

        conv_part(c, part, &p);
        total = c->groups * p.c.p.panels;
        first = part * total;
        if (begin < first + total && end > first) {
            conv_pack_weights(&p.c, conv_max(begin - first, 0), conv_min(end - first, total),
                              scratch);
        }
    }
}

static void
conv_run_dx(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernConv *c = args;
    ConvPart p = {.tasks = 0};

    for (int64_t part = 0; part < conv_parts(c); part++) {
        conv_part(c, part, &p);
        if (begin < p.first_task + p.tasks && end > p.first_task) {
            conv_run(&p.c, p.c.y, p.c.x, conv_max(begin - p.first_task, 0),
                     conv_min(end - p.first_task, p.tasks), scratch);
        }
    }
}

static void
conv_plan_dx(KernConv *c, KernPlan *plan)
{
    ConvPart p = {.tasks = 0};

    c->epi = KERN_EPI_STORE;
    *plan = (KernPlan){.nphase = 0};
    if (c->n <= 0 || c->c <= 0 || c->h <= 0 || c->w <= 0) {
        return;
    }
    plan->nphase = 2;
    plan->phase[0].fn = conv_pack_dx;
    plan->phase[1].fn = conv_run_dx;
    for (int64_t part = 0; part < conv_parts(c); part++) {
        conv_part(c, part, &p);
        conv_plan_add(&p.c, plan, p.tasks);
    }
}

static void
conv_plan_dw(KernConv *c, KernPlan *plan)
{
    int64_t item = sizeof(KT), panels, panel;

    conv_orient_forward(c);
    *plan = (KernPlan){.nphase = 0};
    if (c->p.oc <= 0 || c->p.ic <= 0 || c->kh <= 0 || c->kw <= 0) {
        return;
    }
    conv_cut(c, 256, false);
    conv_share_panels(c, c->p.splits);
    panels = c->groups * c->p.panels;
    panel = c->p.k * UKR_NR;
    plan->shared = (size_t)gemm_round(c->p.splits * panels * panel * item);
    plan->phase[0] = (CcPhase){
        .fn = conv_run_dw,
        .size = c->p.splits * c->p.panel_groups,
        .grain = 1,
        .scratch = conv_offsets_bytes(c->p.images * c->p.row_block) + conv_input_bytes(c)
                 + gemm_round(c->p.images * c->p.row_block * c->p.out_w * UKR_NR * item),
        .work = (double)c->n * (double)(c->p.out_h * c->p.out_w) * (double)(panels * panel)
              / (UKR_NR * 1.2)};
    plan->phase[1] = (CcPhase){.fn = conv_reduce_dw,
                               .size = panels * c->kh * c->kw,
                               .grain = gemm_ceil(8192, c->p.ic * UKR_NR * c->p.splits),
                               .scratch = gemm_round(c->p.ic * UKR_NR * item),
                               .work = (double)(panels * panel * c->p.splits) * 0.5};
    plan->nphase = 2;
}

#endif
