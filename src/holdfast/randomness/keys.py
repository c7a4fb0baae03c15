"""Noise keys: one secret, as many labelled streams of words as a release needs, each word handed out once.

Stream of a label: AES-256-CTR under K_enc, first counter block = AES-256-CMAC(K_mac, encoded label in lane 0), read as little-endian 32-bit
words. Extra bits of depth r for word number t: AES-256 under K_enc of (tag of the label in lane r + 1) + t mod 2^128, as four such words.
Keys are derived in vault.py; labels are encoded, and bounds on collisions stated and kept, in labels.py.

Sealed, a key is stored across an interruption: encrypted under two secrets, one that the user keeps and one made for this key alone.

    sealed = version byte, 16 bytes of salt, 12 bytes of nonce, AES-256-GCM(master secret) under HMAC-SHA-256(second, scrypt(secret, salt))

The version byte and whether the key is private are authenticated. Without the second secret, 256 random bits that are kept apart from the
sealed key and destroyed with it, nobody opens it, whoever has the user's secret. Files that hold secrets of the user are read only where
nobody else can read them.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from holdfast.errors import InvalidParameter, KeyMisuse
from holdfast.randomness.labels import Claims, LabelPart, encode_label
from holdfast.randomness.streams import Stream
from holdfast.randomness.vault import KEY_BYTES, STREAM_VERSION, NotCopied, Vault, hmac_sha256, purpose

VERSION = 2
"""1 had no second secret."""
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
LEAST_SECRET_BYTES = 16


def second_secret() -> bytes:
    """A fresh second secret, for one key."""
    return os.urandom(KEY_BYTES)


def seal(master: bytes, is_private: bool, secret: bytes, second: bytes) -> bytes:
    """The master secret of a key, encrypted under the user's secret and a second one."""
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    return bytes([VERSION, is_private]) + salt + nonce + _cipher(secret, second, salt).encrypt(nonce, master, _header(is_private))


def unseal(sealed: bytes, secret: bytes, second: bytes) -> tuple[bytes, bool]:
    """(master secret, whether it is private), or KeyMisuse where a secret is another or the sealed key was changed."""
    if len(sealed) != 2 + SALT_BYTES + NONCE_BYTES + KEY_BYTES + TAG_BYTES or sealed[0] != VERSION or sealed[1] > 1:
        raise KeyMisuse("The sealed key is damaged or of another version. It cannot be opened.")
    is_private = bool(sealed[1])
    salt, rest = sealed[2 : 2 + SALT_BYTES], sealed[2 + SALT_BYTES :]
    try:
        return _cipher(secret, second, salt).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], _header(is_private)), is_private
    except InvalidTag:
        raise KeyMisuse("The sealed key cannot be opened with these secrets. Give the secret it was sealed with.") from None


def _header(is_private: bool) -> bytes:
    return f"holdfast sealed key {VERSION}, stream version {STREAM_VERSION}, private {int(is_private)}".encode("ascii")


def _cipher(secret: bytes, second: bytes, salt: bytes) -> AESGCM:
    if not isinstance(secret, bytes) or len(secret) < LEAST_SECRET_BYTES:
        raise InvalidParameter(
            f"The secret that seals noise keys needs at least {LEAST_SECRET_BYTES} bytes. Make one: openssl rand -hex 32."
        )
    if not isinstance(second, bytes) or len(second) != KEY_BYTES:
        raise KeyMisuse("The second secret of a sealed key is damaged. The key cannot be opened.")
    return AESGCM(hmac_sha256(second, purpose("sealing", is_private=True) + Scrypt(salt=salt, length=32, n=2**14, r=8, p=1).derive(secret)))


def read_key_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a key file; OSError where it cannot be read, KeyMisuse where its group or others may read or change it."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        content = file.read()
    if mode & 0o077:
        name = Path(path).name
        raise KeyMisuse(
            f"The key file {name!r} can be read or changed by others (mode {mode & 0o777:04o}). Use chmod 600 on it. If others may have "
            "read it, make a new key."
        )
    return content


__all__ = ["STREAM_VERSION", "NoiseKey"]

_POSITION_LIMIT = 2**64
_PUBLIC_TEST_SECRET = b"holdfast test key: NOT PRIVATE"


class NoiseKey(NotCopied):
    """A 256-bit secret from which labelled streams are opened.

    Given:       AES-256 and HMAC-SHA-256 behave as pseudorandom functions; the secret came from the operating system (`generate`).
    Guarantees:  within one key object each word of each label is handed out at most once (extra bits of a word may be asked for again and
                 are the same); streams of different labels are independent up to the bounds in labels.py; use in a forked process is
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
        """This key encrypted under a secret of the user's (16 bytes at least) and a second one, to go on after an interruption.

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
