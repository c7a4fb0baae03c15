"""Promises about a subspace: every operation against mechanisms with few outcomes, in fractions; [GGY22] section 2, Theorems 3.1 and 3.3.

Laws below are any laws: a number f > 1 stands in place of e, so that (epsilon, delta) with a whole epsilon means the factor f^epsilon, and
the smallest delta is exact. None of the results depends on the base.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.research.subspace import FiniteMechanism, InvariantSpace, Subspace, SubspaceGuarantee, joint_exposure
from holdfast.research.subspace.guarantee import SubspaceExposure

BASE = Fraction(3, 2)
PEOPLE = tuple(product(range(3), repeat=2))
"""Two people, each in one of three cells."""
PAIRS = [(x, y) for x, y in combinations(PEOPLE, 2) if sum(a != b for a, b in zip(x, y, strict=True)) == 1]
POINTS = tuple(product((Fraction(0), Fraction(1)), repeat=3))


def histogram(x: Hashable) -> tuple[Fraction, ...]:
    assert isinstance(x, tuple)
    return tuple(Fraction(x.count(cell)) for cell in range(3))


def mechanism(weights: list[int]) -> FiniteMechanism:
    """Each data set has its own weights on the eight points: nothing additive about it."""
    laws = {}
    for place, x in enumerate(PEOPLE):
        own = [weights[(place * 8 + i) % len(weights)] for i in range(8)]
        laws[x] = {y: Fraction(w, sum(own)) for y, w in zip(POINTS, own, strict=True)}
    return FiniteMechanism(laws)


def attained(m: FiniteMechanism, space: Subspace, epsilon: int) -> SubspaceGuarantee:
    """The best promise of this epsilon."""
    return SubspaceGuarantee(space=space, epsilon=Fraction(epsilon), delta=m.delta(BASE**epsilon, PAIRS, space))


def holds(m: FiniteMechanism, guarantee: SubspaceGuarantee) -> bool:
    return m.delta(BASE ** int(guarantee.epsilon), PAIRS, guarantee.space) <= guarantee.delta


weights = st.lists(st.integers(1, 9), min_size=29, max_size=29)  # 29 is prime to 8: the data sets get different laws
rows = st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=2)
WHOLE = Subspace.whole(3)


class TestOperations:
    @settings(max_examples=30)
    @given(weights, rows, rows)
    def test_nested(self, chosen: list[int], normals: list[list[int]], more: list[list[int]]) -> None:
        """Proposition 2.7; from R^3, Corollary 2.8."""
        m = mechanism(chosen)
        V = Subspace.span(normals, 3).complement()
        smaller = V & Subspace.span(more, 3).complement()
        assert holds(m, SubspaceGuarantee.of_private(3, 1, m.delta(BASE, PAIRS)).within(V))
        assert holds(m, attained(m, V, 1).within(smaller))

    def test_nesting_the_other_way_is_refused_and_would_be_wrong(self) -> None:
        m = mechanism(list(range(1, 30)))
        line = Subspace.span([[1, 1, 1]], 3)
        promise = attained(m, line, 1)
        assert m.delta(BASE, PAIRS, WHOLE) > promise.delta
        with pytest.raises(InvalidParameter, match="does not lie in the one of the promise"):
            promise.within(WHOLE)

    @settings(max_examples=15)
    @given(weights, weights, rows, rows)
    def test_composition_adds_epsilon_and_delta(
        self, one: list[int], two: list[int], first: list[list[int]], second: list[list[int]]
    ) -> None:
        """Proposition 2.9, with delta."""
        a, b = mechanism(one), mechanism(two)
        V, W = (Subspace.span(normals, 3).complement() for normals in (first, second))
        together = attained(a, V, 1).beside(attained(b, W, 2))
        assert (together.epsilon, together.space.dimension) == (Fraction(3), V.dimension + W.dimension)
        assert holds(a.beside(b), together)

    def test_composition_with_less_delta_fails_somewhere(self) -> None:
        """Power: the sum of the deltas cannot be replaced by the larger one."""
        found = FiniteMechanism({x: {(Fraction(x[0]),): Fraction(1, 4), (Fraction(9),): Fraction(3, 4)} for x in PEOPLE})
        promise = attained(found, Subspace.whole(1), 1)
        assert promise.delta == Fraction(1, 4)
        together = promise.beside(promise)
        both = found.beside(found).delta(BASE**2, PAIRS, together.space)
        assert promise.delta < both <= together.delta

    @settings(max_examples=20)
    @given(weights, weights, rows, rows, st.fractions(0, 1))
    def test_mixtures(self, one: list[int], two: list[int], first: list[list[int]], second: list[list[int]], p: Fraction) -> None:
        """The axiom of choice."""
        a, b = mechanism(one), mechanism(two)
        V, W = (Subspace.span(normals, 3).complement() for normals in (first, second))
        mixed = attained(a, V, 1).mix(attained(b, W, 2), p)
        assert mixed.space == V & W
        assert holds(a.mix(b, p), mixed)

    def test_the_delta_of_a_mixture_is_attained(self) -> None:
        """One tells the first person's cell a quarter of the time, the other half of the time: the mean is not less."""
        one, other = (
            FiniteMechanism({x: {(Fraction(x[0]),): p, (Fraction(9),): 1 - p} for x in PEOPLE}) for p in (Fraction(1, 4), Fraction(1, 2))
        )
        line = Subspace.whole(1)
        mixed = attained(one, line, 1).mix(attained(other, line, 1), "1/3")
        assert mixed.delta == one.mix(other, Fraction(1, 3)).delta(BASE, PAIRS, line) == Fraction(5, 12)

    @settings(max_examples=20)
    @given(weights, rows, st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=3))
    def test_post_processing(self, chosen: list[int], normals: list[list[int]], T: list[list[int]]) -> None:
        m = mechanism(chosen)
        V = Subspace.span(normals, 3).complement()
        shown = m.map_output(lambda _, y: tuple(sum((t * v for t, v in zip(row, y, strict=True)), Fraction(0)) for row in T))
        assert holds(shown, attained(m, V, 1).processed(T))

    @settings(max_examples=20)
    @given(weights, rows, st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=3))
    def test_what_stays_published_after_processing(self, chosen: list[int], normals: list[list[int]], T: list[list[int]]) -> None:
        """Combinations w of T y are constant over all outcomes exactly where the promise says so: all outcomes have weight here."""

        def image(y: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
            return tuple(sum((t * v for t, v in zip(row, y, strict=True)), Fraction(0)) for row in T)

        V = Subspace.span(normals, 3).complement()
        made = mechanism(chosen).project(V, histogram).map_output(lambda _, y: image(y))
        found = SubspaceGuarantee(space=V, kept=V, epsilon=Fraction(1)).processed(T)
        for x, law in made.laws.items():
            moved = [[a - b for a, b in zip(y, image(histogram(x)), strict=True)] for y in law]
            spread = Subspace.span(moved, len(T))  # where the outcomes differ from T A(x), and from each other
            same = found.identities if found.kept is None else found.kept
            assert spread == (Subspace.whole(len(T)) if same is None else same)
        images = [list(image(point)) for point in product((Fraction(0), Fraction(1)), repeat=3)]
        possible = Subspace.span(images, len(T))
        assert found.identities == (None if possible.dimension == len(T) else possible)
        assert found.kept_rows == possible.dimension - spread.dimension
        still = {i for i in range(len(T)) if not any(T[i])}
        assert found.fixed_cells == tuple(i for i in range(len(T)) if i not in still and all(not move[i] for move in moved))

    def test_rows_that_follow_from_others_after_processing_are_no_kept_rows(self) -> None:
        promise = SubspaceGuarantee.induced_by(InvariantSpace([[1, 1, 1, 0]]), 1)
        twice = promise.processed([[1, -1, 0, 0], [2, -2, 0, 0]])  # the second is twice the first, in every data set
        assert (twice.kept, twice.to_fields()["kept_rows"], twice.fixed_cells) == (None, 0, ())
        nothing = promise.processed([[1, -1, 0, 0], [0, 0, 0, 0]])  # the second is 0
        assert (nothing.kept_rows, nothing.fixed_cells, joint_exposure(nothing)) == (0, (), SubspaceExposure(0, (), ()))
        said = promise.processed([[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]])  # the kept row, twice
        assert (said.kept_rows, said.fixed_cells, said.is_induced) == (1, (0, 1), True)
        assert said.processed([[1, 1, 0], [0, 0, 1]]).fixed_cells == (0,)
        assert said.beside(twice).kept_rows == joint_exposure(said, said).rows == said.mix(said, "1/2").kept_rows == 1

    def test_mixtures_of_promises_that_keep_different_rows_are_refused(self) -> None:
        """The row that one of them keeps is published whenever that one is chosen; a mixture that forgot it would expose nothing."""
        one, other = (SubspaceGuarantee.induced_by(InvariantSpace(kept), 1) for kept in ([[1, 1, 0]], [[1, 1, 0], [0, 1, 1]]))
        for first, second in ((one, other), (other, one), (one, SubspaceGuarantee.of_private(3, 1))):
            with pytest.raises(InvalidParameter, match="Mix mechanisms that keep the same rows"):
                first.mix(second, "1/2")
        assert joint_exposure(one.mix(one, "1/2")).rows == 1
        assert SubspaceGuarantee.of_private(3, 1).mix(SubspaceGuarantee.induced_by(InvariantSpace([], 3), 1), "1/2").kept_rows == 0

    def test_a_free_part_is_private_as_a_whole_and_the_rest_is_published(self) -> None:
        promise = SubspaceGuarantee.induced_by(InvariantSpace([[1, 1, 1, 0]]), "1/4", "1e-6")
        free = promise.processed([[1, -1, 0, 0], [0, 0, 0, 1]])
        assert (free.space, free.kept) == (Subspace.whole(2), None)
        part = promise.processed([[1, 0, 0, 0], [0, 1, 1, 0]])
        assert part.space == Subspace.span([[2, -1]], 2)  # 2 y_1 - (y_2 + y_3) looks at N only
        assert part.kept == Subspace.span([[1, -1]], 2)  # the sum of both is published as it is
        row = promise.processed([[1, 1, 1, 0]])
        assert (row.space.dimension, row.fixed_cells) == (0, (0,))

    def test_neighbours_are_not_mixed_up(self) -> None:
        one, other = (SubspaceGuarantee.of_private(2, 1, neighbours=n) for n in ("replace-one", "add-remove"))
        with pytest.raises(InvalidParameter, match="State both for the same neighbours"):
            one.beside(other)
        with pytest.raises(InvalidParameter, match="State both for the same neighbours"):
            one.mix(other, "1/2")

    def test_what_is_weaker_about_one_part_is_weaker_about_both(self) -> None:
        sure = SubspaceGuarantee.induced_by(InvariantSpace([[1, 1]]), 1)
        unsure = SubspaceGuarantee.induced_by(InvariantSpace([[1, 1]]), 1, basis="declared", status="floating point")
        both = sure.beside(unsure)
        assert (both.basis, both.status, both.is_induced) == ("declared", "floating point", True)
        assert sure.mix(unsure, "1/3").is_induced

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"epsilon": "-1"}, "epsilon must be zero or more"),
            ({"delta": "2"}, "delta must be at most 1"),
            ({"neighbours": "some"}, "neighbours must be one of"),
            ({"epsilon": 0.5}, "must be exact"),
        ],
    )
    def test_bad_numbers(self, change: dict[str, object], message: str) -> None:
        fields = {"cells": 2, "epsilon": "1", **change}
        with pytest.raises(InvalidParameter, match=message):
            SubspaceGuarantee.of_private(**fields)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="weight is a probability"):
            SubspaceGuarantee.of_private(2, 1).mix(SubspaceGuarantee.of_private(2, 1), 2)


class TestFinite:
    def test_delta_looks_both_ways(self) -> None:
        """Worked by hand: 1 - f / 2 one way, 1/2 the other."""
        half, a, b = Fraction(1, 2), (Fraction(0),), (Fraction(1),)
        m = FiniteMechanism({"x": {a: Fraction(1)}, "y": {a: half, b: half}})
        assert m.delta(BASE, [("x", "y")]) == m.delta(BASE, [("y", "x")]) == half
        assert m.delta(Fraction(1), [("x", "y")]) == half
        assert m.mean("y") == (half,)
        assert m.squared_error("y", a) == half


class TestExamples:
    def test_example_2_3_the_total_of_a_histogram(self) -> None:
        """Who is replaced leaves the total alone; who is added does not, and then the ratio is infinite."""
        C = InvariantSpace([[1] * 4])
        assert C.differing_row([1, 1, 0, 1], [0, 1, 0, 2]) is None
        assert C.differing_row([1, 1, 0, 1], [1, 1, 1, 1]) == (1, 1, 1, 1)

    def test_example_2_4_the_witness_of_an_infinite_ratio(self) -> None:
        """X = {1, 2, 3, 4}, C = (1, 0, 1, 0), x = (1, 2, 4), x' = (4, 2, 4): y_1 + y_3 = 1 with probability 1 and 0."""
        C = InvariantSpace([[1, 0, 1, 0]])
        data = {name: tuple(Fraction(people.count(k)) for k in (1, 2, 3, 4)) for name, people in (("x", (1, 2, 4)), ("x'", (4, 2, 4)))}
        row = C.differing_row(data["x"], data["x'"])
        assert row == (1, 0, 1, 0)
        steps = (Fraction(-1), Fraction(0), Fraction(1))
        noisy = {
            name: {tuple(a + s for a, s in zip(answer, e, strict=True)): Fraction(1, 81) for e in product(steps, repeat=4)}
            for name, answer in data.items()
        }
        kept = FiniteMechanism(noisy).project(C.space, lambda name: data[str(name)])
        for name, answer in data.items():
            assert {sum(c * v for c, v in zip(row, y, strict=True)) for y in kept.laws[name]} == {answer[0] + answer[2]}
        assert kept.delta(Fraction(10**9), [("x", "x'")]) == 1  # no (epsilon, delta) with delta < 1
        assert kept.delta(Fraction(10**9), [("x", "x'")], C.space) < 1  # Definition 2.5 for N

    def test_two_sets_of_margins_expose_together_what_neither_does(self) -> None:
        """[GGY22] after Proposition 2.9: one query, ages kept by one publication, areas and a corner by the other."""
        ages = SubspaceGuarantee.induced_by(InvariantSpace([[1, 1, 0, 0], [0, 0, 1, 1]]), 1)
        areas = SubspaceGuarantee.induced_by(InvariantSpace([[1, 0, 1, 0], [0, 1, 1, 0]]), 1)
        assert (ages.fixed_cells, areas.fixed_cells) == ((), ())
        found = joint_exposure(ages, areas)
        assert (found.rows, found.cells, found.only_together) == (4, (0, 1, 2, 3), (0, 1, 2, 3))
        assert ages.beside(areas).fixed_cells == ()  # the composition of two queries says nothing of this
        assert joint_exposure(SubspaceGuarantee.of_private(4, 1)).rows == 0


class TestFrameworks:
    """Theorems 3.1 and 3.3 and Corollary 3.10, by going through all outcomes."""

    @settings(max_examples=20)
    @given(weights, rows)
    def test_projection_of_any_mechanism(self, chosen: list[int], normals: list[list[int]]) -> None:
        m, V = mechanism(chosen), Subspace.span(normals, 3).complement()
        made = m.project(V, histogram)
        for x, law in made.laws.items():
            exact = V.complement().project(histogram(x))
            assert {V.complement().project(y) for y in law} == {exact}
        assert made.delta(BASE, PAIRS, V) == m.delta(BASE, PAIRS, V) <= m.delta(BASE, PAIRS)

    @settings(max_examples=20)
    @given(weights, rows)
    def test_extension_both_ways(self, chosen: list[int], normals: list[list[int]]) -> None:
        V = Subspace.span(normals, 3).complement()
        H = mechanism(chosen).map_output(lambda _, y: V.project(y))
        made = H.extend(V, histogram)
        assert made.delta(BASE, PAIRS, V) == H.delta(BASE, PAIRS)
        assert made.map_output(lambda _, y: V.project(y)).laws == H.laws  # back again
        for x, law in made.laws.items():
            assert {V.complement().project(y) for y in law} == {V.complement().project(histogram(x))}
            # Corollary 3.10: equal errors
            assert made.squared_error(x, histogram(x)) == H.squared_error(x, V.project(histogram(x)))

    def test_projection_keeps_the_mean(self) -> None:
        """Corollary 4.1, on noise that is not symmetric: -1 with probability 2/3, else 2."""
        e = {
            (Fraction(a), Fraction(b), Fraction(c)): Fraction(2, 3) ** [a, b, c].count(-1) * Fraction(1, 3) ** [a, b, c].count(2)
            for a, b, c in product((-1, 2), repeat=3)
        }
        noisy = FiniteMechanism(
            {x: {tuple(h + v for h, v in zip(histogram(x), step, strict=True)): p for step, p in e.items()} for x in PEOPLE}
        )
        made = noisy.project(InvariantSpace([[1, 2, 3]]).space, histogram)
        assert all(made.mean(x) == histogram(x) for x in PEOPLE)
        assert all(made.squared_error(x, histogram(x)) == 2 * 2 for x in PEOPLE)  # (n - n_c) times the variance 2


class TestWords:
    def test_promises_in_words(self, snapshot: object) -> None:
        induced = SubspaceGuarantee.induced_by(
            InvariantSpace([[1, 1, 0], [0, 0, 1]]), "1/4", "1e-6", basis="declared", status="floating point"
        )
        assert callable(snapshot)
        snapshot(hf.describe(induced), "induced")
        snapshot(hf.describe(SubspaceGuarantee.of_private(3, 12, neighbours="add-remove").within(Subspace.span([[1, 0, 0]], 3))), "part")
        with pytest.raises(InvalidParameter, match="delta belongs to a guarantee or a composition"):
            hf.describe(induced, delta="1e-9")
