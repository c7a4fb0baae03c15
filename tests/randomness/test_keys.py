"""Noise keys: each word once, secrets out of sight, nothing usable after close or in another process."""

import copy
import gc
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from holdfast.errors import ForkedKey, InvalidParameter, KeyClosed, KeyMisuse, StreamReused
from holdfast.randomness import NoiseKey
from holdfast.randomness.labels import Claims
from holdfast.randomness.vault import STREAM_VERSION, purpose
from tests.randomness.vaults import secrets_of, vault_of


def words(key: NoiseKey, *label) -> list[int]:
    return [int(word) for word in key.stream(*label).take(8)]


def test_a_key_is_not_built_directly():
    for arguments in ((), (b"x" * 32,)):
        with pytest.raises(KeyMisuse, match=r"NoiseKey.generate\(\).*NoiseKey.for_tests"):
            NoiseKey(*arguments)


def test_generated_keys_differ_and_are_private():
    one, two = NoiseKey.generate(), NoiseKey.generate()
    assert one.is_private
    assert words(one, "a") != words(two, "a")


def test_test_keys_repeat_and_say_so():
    assert words(NoiseKey.for_tests(3), "a") == words(NoiseKey.for_tests(3), "a")
    assert not NoiseKey.for_tests(3).is_private
    assert len({tuple(words(NoiseKey.for_tests(seed), "a")) for seed in (3, "3", 4, -3, 2**80)}) == 5
    wrong: list[Any] = [True, 1.0, None]
    for seed in wrong:
        with pytest.raises(InvalidParameter, match="seed"):
            NoiseKey.for_tests(seed)


def test_labels_lanes_and_subkeys_give_different_words():
    key = NoiseKey.for_tests(1)
    found = [words(key, *label) for label in (("a",), (b"a",), ("a", 0), ("a", ""), (0,), ("0",), ("a", "b"), ("ab",))]
    found += [
        words(key.derive("a"), "a"),
        words(key.derive("b"), "a"),
        words(key.derive("a", "b"), "a"),
        words(key.derive("a").derive("b"), "a"),
    ]
    stream = key.stream("extra")
    found.append(stream.take(8).tolist())
    found += [stream.extra(np.array([0, 1], dtype=np.uint64), depth).ravel().tolist() for depth in range(3)]
    everything = [word for words_of_one in found for word in words_of_one]
    assert len(set(everything)) == len(everything)


def test_the_version_is_part_of_every_key():
    assert STREAM_VERSION == 6
    assert b"stream version 6:" in purpose("anything", is_private=True)


def test_a_secret_and_a_test_key_of_the_same_bytes_have_no_word_in_common():
    """And test keys keep their words from version to version: they protect nothing, and known answers are made with them."""
    assert b"stream version 2:" in purpose("anything", is_private=False)
    secret, test = (NoiseKey._open(bytes(32), is_private, Claims()) for is_private in (True, False))
    for label in (("a",), ("b", 1)):
        assert not set(words(secret, *label)) & set(words(test, *label))
        assert not set(words(secret.derive("x"), *label)) & set(words(test.derive("x"), *label))


def test_a_label_opens_once():
    key = NoiseKey.for_tests(1)
    first = key.stream("a", 1)
    with pytest.raises(StreamReused, match=r"\('a', 1\).*key.resume"):
        key.stream("a", 1)
    del first
    gc.collect()
    with pytest.raises(StreamReused):
        key.stream("a", 1)


def test_resume_takes_over_at_the_position_reached_only():
    key = NoiseKey.for_tests(1)
    whole = NoiseKey.for_tests(1).stream("a").take(20)
    first = key.stream("a")
    first.take(10)
    first.give_back(3)
    for position in (0, 6, 8, 10):
        with pytest.raises(StreamReused, match=f"stands at word 7 and was asked to resume at word {position}"):
            key.resume("a", position=position)
    second = key.resume("a", position=7)
    assert np.array_equal(second.take(5), whole[7:12])
    with pytest.raises(KeyClosed):
        first.take(1)
    assert first.position == 7
    del second
    gc.collect()
    with pytest.raises(StreamReused):
        key.resume("a", position=7)
    assert np.array_equal(key.resume("a", position=12).take(8), whole[12:])


def test_a_resumed_label_cannot_be_opened_again():
    key = NoiseKey.for_tests(1)
    key.resume("a", position=100)
    with pytest.raises(StreamReused):
        key.stream("a")


@pytest.mark.parametrize("position", [-1, 2**64, 1.0, True, None])
def test_resume_refuses_what_is_no_position(position):
    with pytest.raises(InvalidParameter, match="position"):
        NoiseKey.for_tests(1).resume("a", position=position)


def test_subkeys_inherit_privacy_outlive_their_parent_and_share_claims_by_name():
    parent = NoiseKey.generate()
    child, twin = parent.derive("x", 1), parent.derive("x", 1)
    assert child.is_private
    assert not NoiseKey.for_tests(1).derive("x").is_private
    parent.close()
    stream = child.stream("a")
    stream.take(3)
    with pytest.raises(StreamReused):
        twin.stream("a")
    twin.resume("a", position=3).take(1)
    with pytest.raises(KeyClosed):
        stream.take(1)
    child.close()
    assert len(twin.stream("b").take(2)) == 2
    assert words(NoiseKey.for_tests(1).derive("x"), "a") == words(NoiseKey.for_tests(1).derive("x"), "a")


def test_nothing_shows_the_secret():
    private, public = NoiseKey.generate(), NoiseKey.for_tests(1)
    assert repr(private) == str(private) == f"{private}" == "NoiseKey(private)"
    assert f"{public:>40}".strip() == repr(public) == "NoiseKey(for tests: NOT PRIVATE)"
    assert not hasattr(private, "__dict__")
    assert not hasattr(vault_of(private), "__dict__")
    for holder in (private, vault_of(private), private.stream("a")):
        shown = [getattr(holder, name) for name in dir(holder) if not name.startswith("_")]
        assert not any(isinstance(value, (bytes, bytearray, memoryview)) for value in shown)
        secrets = [bytes(secret) for secret in secrets_of(private)]
        assert not any(secret.hex() in repr(holder) or repr(secret)[2:-1] in repr(holder) for secret in secrets)


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy, lambda x: x.__getstate__(), lambda x: x.__reduce__()])
def test_nothing_can_be_copied(copier):
    key = NoiseKey.for_tests(1)
    for holder in (key, vault_of(key), key.stream("a")):
        with pytest.raises(KeyMisuse, match=r"cannot be copied or pickled.*key.derive"):
            copier(holder)


def test_keys_are_equal_only_to_themselves():
    one = NoiseKey.for_tests(1)
    assert one != NoiseKey.for_tests(1)
    assert one == one
    assert len({one, one, NoiseKey.for_tests(1)}) == 2


def test_close_erases_and_stops_everything():
    key = NoiseKey.for_tests(1)
    secrets = secrets_of(key)
    assert all(any(secret) and len(secret) == 32 for secret in secrets)
    stream = key.stream("a")
    stream.take(1)
    with key:
        pass
    assert not any(any(secret) for secret in secrets)
    assert stream._cipher is None
    which = np.zeros(1, dtype=np.uint64)
    uses: list[Callable[[], object]] = [
        lambda: key.stream("c"),
        lambda: key.resume("c", position=0),
        lambda: key.derive("c"),
    ]
    uses += [lambda: stream.take(1), lambda: stream.take_into(np.empty(1, np.uint32)), lambda: stream.extra(which, 0), key.__enter__]
    for use in uses:
        with pytest.raises(KeyClosed):
            use()
    key.close()
    assert key.is_private is False


def test_a_forgotten_key_is_erased():
    key = NoiseKey.for_tests(1)
    secret = secrets_of(key)[0]
    assert any(secret)
    del key
    gc.collect()
    assert not any(secret)


def outcome_in_child(action) -> str:
    """Run `action` in a forked child; the name of the error it raised, or "no error"."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            name = "no error"
        except BaseException as error:
            name = type(error).__name__
        os.write(writer, name.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        name = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return name


# From Python 3.12 on, os.fork warns when other threads run, as they may under a parallel test runner.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_no_words():
    key = NoiseKey.for_tests(1)
    stream = key.stream("a")
    stream.take(2)
    which = np.zeros(1, dtype=np.uint64)
    uses: list[Callable[[], object]] = [
        lambda: key.stream("c"),
        lambda: key.resume("a", position=2),
        lambda: key.derive("c"),
    ]
    uses += [lambda: stream.take(1), lambda: stream.extra(which, 0), lambda: stream.give_back(1)]
    assert [outcome_in_child(use) for use in uses] == [ForkedKey.__name__] * len(uses)
    assert outcome_in_child(key.close) == "no error"
    assert len(stream.take(1)) == 1
