"""Noise keys: one secret, as many labelled streams of words as a release needs, each word handed out once.

Stream of a label: AES-256-CTR under K_enc, first counter block = AES-256-CMAC(K_mac, encoded label in lane 0), read as little-endian 32-bit
words. Extra bits of depth r for word number t: AES-256 under K_enc of (tag of the label in lane r + 1) + t mod 2^128, as four such words.
Keys are derived in vault.py, labels encoded in labels.py, bounds on collisions stated and kept in claims.py.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from holdfast.errors import InvalidParameter, KeyMisuse
from holdfast.randomness.claims import Claims
from holdfast.randomness.labels import LabelPart, encode_label
from holdfast.randomness.sealing import seal, unseal
from holdfast.randomness.streams import Stream
from holdfast.randomness.vault import KEY_BYTES, STREAM_VERSION, NotCopied, Vault, hmac_sha256, purpose

__all__ = ["STREAM_VERSION", "NoiseKey"]

_POSITION_LIMIT = 2**64
_PUBLIC_TEST_SECRET = b"holdfast test key: NOT PRIVATE"


class NoiseKey(NotCopied):
    """A 256-bit secret from which labelled streams are opened.

    Given:       AES-256 and HMAC-SHA-256 behave as pseudorandom functions; the secret came from the operating system (`generate`).
    Guarantees:  within one key object each word of each label is handed out at most once (extra bits of a word may be asked for again and
                 are the same); streams of different labels are independent up to the bounds in claims.py; use in a forked process is
                 refused; the secret is not shown, copied or pickled.
    Not promised: two objects opened from one secret (two processes, `for_tests` twice) do not know of each other. One release, one key.

    Use it as a context manager: leaving erases the secret and closes every stream. A key may be shared between threads; a stream may not.
    """

    __slots__ = ("_vault",)
    _vault: Vault

    def __init__(self, *_: object, **__: object) -> None:
        raise KeyMisuse("A noise key is not built directly. Use NoiseKey.generate() for a release, NoiseKey.for_tests(seed) for a test.")

    @classmethod
    def _open(cls, master: bytes, is_private: bool, claims: Claims) -> Self:
        key = object.__new__(cls)
        key._vault = Vault(master, is_private, claims)
        return key

    @classmethod
    def generate(cls) -> Self:
        """A new secret of 256 bits from the operating system."""
        return cls._open(os.urandom(KEY_BYTES), True, Claims())

    @classmethod
    def for_tests(cls, seed: int | str) -> Self:
        """A key anyone can recompute from `seed`: for tests and examples. `is_private` is False."""
        if not isinstance(seed, (int, str)) or isinstance(seed, bool):
            raise InvalidParameter(
                f"The seed of a test key is an int or a str; found {type(seed).__name__}. Write for example for_tests(1)."
            )
        return cls._open(hmac_sha256(_PUBLIC_TEST_SECRET, purpose("test key", is_private=False) + encode_label((seed,))), False, Claims())

    @property
    def is_private(self) -> bool:
        """True if the secret came from the operating system; False for test keys and their subkeys."""
        return self._vault.is_private

    def derive(self, *parts: LabelPart) -> Self:
        """The subkey named by `parts`: its streams are independent of this key's and of every other subkey's.

        It outlives this key and is closed by itself. Deriving the same name again gives a second handle on the same subkey: both share the
        record of what was handed out, so that no word appears twice. Each subkey has collision bounds of its own.
        """
        name = encode_label(parts)
        return self._open(self._vault.subkey_master(name), self.is_private, self._vault.claims.child(name))

    def stream(self, *labels: LabelPart) -> Stream:
        """Open the stream of this label at its first word; StreamReused if this key opened the label before."""
        vault = self._vault
        tag = vault.tag(labels, 0)
        return Stream(vault, labels, tag, vault.claims.claim(tag, 0, labels))

    def resume(self, *labels: LabelPart, position: int) -> Stream:
        """Go on with the stream of this label at word number `position`.

        If this key object has not opened the label, any position is taken on trust: it continues what another process began. If it has, the
        position must be exactly where that stream stands (words given back count as not handed out), and that stream is closed; anything
        else would repeat or skip words and raises StreamReused.
        """
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < _POSITION_LIMIT:
            raise InvalidParameter(
                f"A position is a number of words, an int from 0 to 2^64 - 1; found {position!r}. Use stream.position as it was."
            )
        vault = self._vault
        tag = vault.tag(labels, 0)
        return Stream(vault, labels, tag, vault.claims.reclaim(tag, position, labels))

    def seal(self, secret: bytes, second: bytes) -> bytes:
        """This key encrypted under a secret of the user's (16 bytes at least) and a second one, to go on after an interruption; see
        sealing.py.

        Whoever has the sealed key and both secrets can recompute all noise: keep the second one apart, and destroy it when the release is
        done.
        """
        return seal(self._vault.exported_master(), self.is_private, secret, second)

    @classmethod
    def unseal(cls, sealed: bytes, secret: bytes, second: bytes) -> Self:
        """The key that `seal` stored. It does not know what the first object handed out: use it to draw the same again, nothing else."""
        master, is_private = unseal(sealed, secret, second)
        return cls._open(master, is_private, Claims())

    def close(self) -> None:
        """Erase the secret and close every stream opened from this key. Everything but `is_private` and printing then raises KeyClosed."""
        self._vault.close()

    def __enter__(self) -> Self:
        self._vault.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return "NoiseKey(private)" if self.is_private else "NoiseKey(for tests: NOT PRIVATE)"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)
