"""Keys put away and taken out again."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidParameter, KeyClosed, KeyMisuse
from holdfast.randomness import NoiseKey
from tests.randomness.vaults import vault_of

SECRET = b"sixteen bytes or more"
SECOND = bytes(range(32))


def test_an_unsealed_key_gives_the_same_words() -> None:
    for key in (NoiseKey.generate(), NoiseKey.for_tests("sealed")):
        sealed = key.seal(SECRET, SECOND)
        again = NoiseKey.unseal(sealed, SECRET, SECOND)
        assert again.is_private == key.is_private
        assert (again.stream("a", 1).take(50) == key.stream("a", 1).take(50)).all()
        assert (again.derive("b").stream("c").take(5) == key.derive("b").stream("c").take(5)).all()


def test_sealing_twice_gives_different_bytes_and_holds_no_secret_in_the_clear() -> None:
    key = NoiseKey.generate()
    master = vault_of(key).exported_master()
    first, second = key.seal(SECRET, SECOND), key.seal(SECRET, SECOND)
    assert first != second
    assert master not in first
    assert SECRET not in first


def test_every_changed_byte_and_another_secret_are_refused() -> None:
    sealed = NoiseKey.generate().seal(SECRET, SECOND)
    with pytest.raises(KeyMisuse, match="secret"):
        NoiseKey.unseal(sealed, SECRET + b"!", SECOND)
    with pytest.raises(KeyMisuse, match="secret"):
        NoiseKey.unseal(sealed, SECRET, bytes(32))
    with pytest.raises(KeyMisuse, match="second secret"):
        NoiseKey.unseal(sealed, SECRET, SECOND[:-1])
    for place in range(0, len(sealed), 7):
        changed = bytes([*sealed[:place], sealed[place] ^ 1, *sealed[place + 1 :]])
        with pytest.raises(KeyMisuse):
            NoiseKey.unseal(changed, SECRET, SECOND)
    for wrong in (b"", sealed[:-1], sealed + b"x"):
        with pytest.raises(KeyMisuse):
            NoiseKey.unseal(wrong, SECRET, SECOND)


def test_short_secrets_and_closed_keys_are_refused() -> None:
    key = NoiseKey.generate()
    with pytest.raises(InvalidParameter, match="openssl rand"):
        key.seal(b"short", SECOND)
    key.close()
    with pytest.raises(KeyClosed):
        key.seal(SECRET, SECOND)
