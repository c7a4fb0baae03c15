"""gamma on finite spaces: against the definition in fractions and doubles, the paper's examples, and what (2.5) alone would say."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure
from holdfast.research.accounting.conditioned import conditioned_loss, gaussian_weight, l1, laplace_weight, paper_examples
from tests.examples import examples

NARROW = Fraction(1, 2**100)


def counts(cells: int, total: int) -> list[tuple[int, ...]]:
    return [y for y in product(range(total + 1), repeat=cells) if sum(y) == total]


def itself(x: tuple[int, ...]) -> tuple[int, ...]:
    return x


def holds(value: Enclosure, expected: Fraction) -> bool:
    return value.lower <= expected <= value.upper and value.upper - value.lower < NARROW


class TestPaper:
    @pytest.mark.parametrize("epsilon", ["1/10", "1/2", "3"])
    def test_three_examples(self, epsilon: str) -> None:
        """[GM20] Examples 5.1, 5.2 and 4.1: 0, -1, and -1/2 or 0 according to the count. [theory T77]"""
        found = paper_examples(epsilon)
        half = Fraction(-1, 2)
        expected = {"5.1": Fraction(0), "5.2": Fraction(-1), "4.1 as the paper counts": half, "4.1 per unit of distance": Fraction(0)}
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert holds(found[name], value), name

    def test_two_people_by_records(self) -> None:
        """4.1 on records themselves: binary vectors all keep their length, so there are pairs at distance 1, at loss epsilon: 0 again."""
        people = 4
        found = conditioned_loss(
            list(product((0, 1), repeat=people)),
            distance=l1,
            query=lambda x: (people - sum(x), sum(x)),
            conforms=lambda _: True,
            weight=laplace_weight("1/4"),
            outputs=[(k, people - k) for k in range(-1, people + 2)],
            normaliser=lambda _: Fraction(1),
            nearest=True,
        )
        assert found is not None
        assert found.distance == 1
        assert holds(found.gamma("1/2"), Fraction(0))

    def test_rounding_on_records(self) -> None:
        """5.2 in small, on binary vectors: groups of three, 4 to 6 of eight have the trait."""
        found = conditioned_loss(
            list(product((0, 1), repeat=8)),
            distance=l1,
            query=lambda x: (-(-sum(x) // 3),),
            conforms=lambda x: 4 <= sum(x) <= 6,
            weight=laplace_weight(1),
        )
        assert found is not None
        assert found.gamma(1) == Enclosure(Fraction(-1), Fraction(-1))

    def test_formula_2_5_cannot_say_so(self) -> None:
        """In Example 5.2 the mandated output is equally likely for all conforming data sets: (2.5) gives 0, the whole ratio -1."""
        law = laplace_weight(1)
        masses = [law((-(-k // 10),), (5,)) for k in range(41, 51)]
        assert max((one / other).log() for one in masses for other in masses) == 0
        assert paper_examples(1)["5.2"].upper == -1

    def test_three_cells(self) -> None:
        """3 cells, total 3, zero or more, epsilon .4: 1 + gamma = 1.317; reached where all three are in one cell and one moves."""
        found = conditioned_loss(counts(3, 3), distance=l1, query=itself, conforms=lambda _: True, weight=laplace_weight("2/5"))
        assert found is not None
        assert f"{float(1 + found.gamma('2/5').upper):.3f}" == "1.317"
        assert [sorted(table) for table in found.pair] == [[0, 0, 3], [0, 1, 2]]
        assert found.output == found.pair[0], "[theory R12]: the output that equals the table attains it"


class TestAgainstTheDefinition:
    @given(
        st.lists(st.lists(st.fractions("1/9", 9, max_denominator=9), min_size=4, max_size=4), min_size=4, max_size=4),
        st.lists(st.booleans(), min_size=4, max_size=4),
    )
    @settings(max_examples=examples(60), deadline=None)
    def test_any_law(self, weights: list[list[Fraction]], conforming: list[bool]) -> None:
        """Four data sets on a line with any weights, any of them conforming."""
        found = conditioned_loss(
            range(4),
            distance=lambda x, y: abs(x - y),
            query=lambda x: x,
            conforms=lambda x: conforming[x],
            weight=lambda a, y: weights[a][y],
        )
        kept = [x for x in range(4) if conforming[x]]
        if len(kept) < 2:
            assert found is None
            return
        laws = {x: [weights[x][y] / sum(weights[x][z] for z in kept) for y in kept] for x in kept}
        ratios = [(max(p / q for p, q in zip(laws[x], laws[y], strict=True)), abs(x - y)) for x in kept for y in kept if x != y]
        slow = max(math.log(ratio) / k for ratio, k in ratios)
        assert found is not None
        assert float(found.per_distance.upper) == pytest.approx(slow, abs=1e-12)
        assert found.per_distance.upper - found.per_distance.lower < NARROW
        x, y = found.pair
        place = kept.index(found.output)
        assert math.log(laws[x][place] / laws[y][place]) / found.distance == pytest.approx(slow, abs=1e-12), "the witness reaches it"

    def test_gamma_is_between_minus_one_and_one(self) -> None:
        for conforms in (lambda x: x[0] < 3, lambda x: x[0] % 2 == 0, lambda x: x[0] != 2, lambda x: x[0] in (0, 6)):
            found = conditioned_loss([(k,) for k in range(7)], distance=l1, query=itself, conforms=conforms, weight=laplace_weight("1/3"))
            assert found is not None
            gamma = found.gamma("1/3")
            assert 0 <= gamma.upper < 1
            assert gamma.upper - gamma.lower < NARROW

    def test_nearest_pairs_alone(self) -> None:
        """Only pairs at the smallest conforming distance: 0 and 1 have equal laws, 5 has another."""
        space = [(0,), (1,), (5,)]

        def weight(answer: tuple[int, ...], output: tuple[int, ...]) -> int:
            return 1000 if answer == output == (5,) else 1

        every = conditioned_loss(space, distance=l1, query=itself, conforms=lambda _: True, weight=weight)
        near = conditioned_loss(space, distance=l1, query=itself, conforms=lambda _: True, weight=weight, nearest=True)
        assert every is not None
        assert near is not None
        assert every.pair in (((1,), (5,)), ((5,), (1,)))
        assert float(every.loss.upper) == pytest.approx(math.log(1002 / 3)), "output 0: 1/3 against 1/1002"
        assert near.distance == 1
        assert holds(near.loss, Fraction(0))

    def test_gaussian_weights(self) -> None:
        """Two tables at distance 2: exp(-1) against 1, so the loss is 1 at equal normalisers."""
        found = conditioned_loss([(0, 1), (1, 0)], distance=l1, query=itself, conforms=lambda _: True, weight=gaussian_weight(1))
        assert found is not None
        assert holds(found.loss, Fraction(1))


class TestBadInput:
    def test_one_conforming_data_set(self) -> None:
        assert conditioned_loss([(0,), (1,)], distance=l1, query=itself, conforms=lambda x: x == (0,), weight=laplace_weight(1)) is None

    def test_no_finite_loss(self) -> None:
        with pytest.raises(InvalidParameter, match="no finite loss"):
            conditioned_loss([(0,), (1,)], distance=l1, query=itself, conforms=lambda _: True, weight=lambda a, y: int(a == y))

    def test_weights(self) -> None:
        with pytest.raises(InvalidParameter, match="below zero"):
            conditioned_loss([(0,), (1,)], distance=l1, query=itself, conforms=lambda _: True, weight=lambda _a, _y: -1)
        with pytest.raises(InvalidParameter, match="no output of positive weight"):
            conditioned_loss([(0,), (1,)], distance=l1, query=itself, conforms=lambda _: True, weight=lambda _a, _y: 0)

    def test_distances(self) -> None:
        with pytest.raises(InvalidParameter, match="distance below 1"):
            conditioned_loss([(0,), (1,)], distance=lambda _x, _y: 0, query=itself, conforms=lambda _: True, weight=laplace_weight(1))
