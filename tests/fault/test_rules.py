"""Seeded faults: `CCOMPILE_STRESS=drop:RULE` breaks one rule of the tape, and a program notices."""

import pytest

from ccompile import _core
from tests.fault.rules import NOTICED
from tests.support import child

CODE = "import sys; from tests.fault.rules import main; main(sys.argv[1:])"

# rule: programs of the corpus, one of which must come out wrong (or not come out) without it
PROGRAMS = {
    "flush": ["print_array_written_before_and_after", "view_of_bits"],
    "overlap": ["two_arguments", "argument_or_global"],
    "forward": ["in_place_operators", "mask_two_dimensional"],
    "early": ["write_then_bad_place"],
    "shown": ["pieces_of_what_was_made"],
    "txn": ["write_then_leave"],
    "revalidate": ["global_counter", "closure_lives_across_calls"],
    "fault": ["errstate_from_an_argument"],
    "type": ["type_tests", "scalar_kind_changes"],
    "identity": ["branch_on_none", "same_object_twice"],
    "value": ["pair_by_number", "dispatch_table"],
    "function": ["function_replaced_while_running"],
    "truth": ["conditional_callee"],
    "length": ["unpacking_fails", "star_arguments"],
    "keys": ["double_star_keeps_order"],
    "absent": ["instance_attribute_appears"],
    "class": ["class_gets_a_length"],
    "plain": ["list_of_unknown_objects"],
    "array": ["array_of_unknown_objects"],
    "result": ["power_of_a_negative_number"],
    "frames": ["invalid_cast_warns"],
    "inplace": ["frame_is_kept"],
    "virtual": ["list_grows_between_branches"],
    "once": ["list_with_two_names"],
    "death": ["finaliser_changes_a_global"],
    "poll": ["signal_is_served_between_two_calls"],
    "parallel": ["swap_in_a_loop"],
    "unchanged": ["nested_counts"],
    "keep": ["iterate_rows_in_place"],
    "running": ["traces_are_forgotten_while_running"],
}


def run(rule):
    """Exit status and output; freed memory is filled, so that its use shows."""
    done = child(CODE, rule, *PROGRAMS[rule or "type"], MALLOC_PERTURB_="165",
                 CCOMPILE_STRESS=None, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_every_rule_has_programs():
    rules = {name for name, _, _ in _core.switch_rows()["drop"]}
    assert rules == set(PROGRAMS)


@pytest.mark.parametrize("rule", PROGRAMS)
def test_a_broken_rule_is_noticed(rule):
    status, text = run(rule)
    assert status == NOTICED or status < 0, f"{rule}: ended with {status}\n{text}"


def test_unbroken_rules_are_quiet():
    every = sorted({name for names in PROGRAMS.values() for name in names})
    done = child(CODE, "", *every, MALLOC_PERTURB_="165", CCOMPILE_STRESS=None, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
