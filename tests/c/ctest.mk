# Builds the layers that know no Python and every tests/c/test_*.c, then runs the programs.
# Each test file is a program of its own, linked with all objects. Called by `make ctest`.

LAYERS := base ir pass gen rt kern build
OUT := build/ctest$(if $(SAN),-san)
MULTI := $(shell grep -l '^/\* isa: multi' csrc/kern/*.c 2>/dev/null)
SINGLE := $(filter-out $(MULTI),$(wildcard $(LAYERS:%=csrc/%/*.c)))
TESTS := $(wildcard tests/c/test_*.c)

# The ISA levels that setup.py uses.
knows = $(shell $(CC) -march=$(1) -E -x c /dev/null >/dev/null 2>&1 && echo yes)
ifneq (,$(filter x86_64 amd64,$(shell uname -m)))
ISA := base $(if $(call knows,x86-64-v3),v3) $(if $(call knows,x86-64-v4),v4)
else
ISA := base
endif
FLAGS_base :=
FLAGS_v3 := -march=x86-64-v3
FLAGS_v4 := -march=x86-64-v4

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
ifeq ($(CCOMPILE_WERROR),1)
WARN += -Werror
endif
FLAGS := -std=gnu11 -g -ffp-contract=off -fno-fast-math -fvisibility=hidden $(WARN) -Icsrc -Itests/c -MMD -MP
FLAGS += $(if $(filter v3,$(ISA)),-DCC_HAVE_ISA_V3=1) $(if $(filter v4,$(ISA)),-DCC_HAVE_ISA_V4=1)
ifneq (,$(SAN))
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FLAGS += -O1 -fno-omit-frame-pointer -DCCOMPILE_DEBUG=1 $(SANITIZE)
else
FLAGS += -O2
endif
LIBS := -lm -ldl -lpthread

OBJECTS := $(SINGLE:%.c=$(OUT)/%.o) $(foreach isa,$(ISA),$(MULTI:%.c=$(OUT)/%-$(isa).o))
PROGRAMS := $(TESTS:%.c=$(OUT)/%)

.PHONY: run
.SECONDARY:
run: $(PROGRAMS)
	@failed=; for program in $(PROGRAMS); do \
	    "./$$program" || { echo "FAILED $$program ($$?)"; failed=yes; }; done; \
	test -z "$$failed" && echo "C tests: $(words $(PROGRAMS)) programs passed$(if $(SAN), under ASan and UBSan)"

$(OUT)/tests/%: $(OUT)/tests/%.o $(OBJECTS)
	@$(CC) $(SANITIZE) -o $@ $^ $(LIBS)

define isa_rule
$(OUT)/csrc/kern/%-$(1).o: csrc/kern/%.c tests/c/ctest.mk
	@mkdir -p $$(@D); echo "cc $$< $(1)"; $(CC) $(FLAGS) -DCC_ISA=$(1) $(FLAGS_$(1)) -c $$< -o $$@
endef
$(foreach isa,$(ISA),$(eval $(call isa_rule,$(isa))))

$(OUT)/%.o: %.c tests/c/ctest.mk
	@mkdir -p $(@D); echo "cc $<"; $(CC) $(FLAGS) -c $< -o $@

-include $(OBJECTS:.o=.d) $(PROGRAMS:=.d)
