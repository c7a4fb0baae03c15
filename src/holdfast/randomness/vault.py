"""Where key material lives: three 32-byte secrets, the ciphers made from them, and the two questions asked before every use.

    master   -- HMAC-SHA-256, purpose "label tags" --> K_mac   tags of labels, by AES-256-CMAC
             -- HMAC-SHA-256, purpose "keystream"  --> K_enc   keystream, by AES-256-CTR from a tag
             -- HMAC-SHA-256, purpose "subkey" + name --> master of a subkey

Closing overwrites the bytearrays and drops the cipher objects. Copies that Python or OpenSSL made on the way (immutable bytes, swapped
pages) are out of reach: closing shortens a secret's life, it does not promise that no trace is left.
"""

from __future__ import annotations

import hmac
import os
import weakref
from typing import NoReturn, Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC

from holdfast.errors import ForkedKey, KeyClosed, KeyMisuse
from holdfast.randomness.labels import Claims, Label, encode_label

KEY_BYTES = 32
STREAM_VERSION = 6
"""Changes whenever the same secret would give another release: other words of a label, or other noise drawn from them. Part of every key
derived from a secret, so that two versions never draw from the same words.
"""
TEST_WORDS_VERSION = 2
"""The same for test keys, which protect nothing: it changes with the words alone, so that known answers tell what samplers do."""

_COUNTER_MODULUS = 2**128


class Closable(Protocol):
    """What a vault closes with itself."""

    def close(self) -> None: ...


def purpose(what: str, *, is_private: bool) -> bytes:
    """The message that derives one kind of key; no purpose is a prefix of another."""
    version = STREAM_VERSION if is_private else TEST_WORDS_VERSION
    return f"holdfast randomness, stream version {version}: {what};".encode("ascii")


def hmac_sha256(key: bytes | bytearray, message: bytes) -> bytes:
    """HMAC-SHA-256 (RFC 2104, FIPS 198-1)."""
    return hmac.digest(key, message, "sha256")


def start_cmac(key: bytes | bytearray) -> CMAC:
    """AES-256-CMAC (SP 800-38B) that has read nothing yet; copy it for each message."""
    return CMAC(algorithms.AES256(key))


def start_ecb(key: bytes | bytearray) -> CipherContext:
    """AES-256 on whole blocks, each by itself: used on counters, never on messages."""
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor()


def start_ctr(key: bytes | bytearray, tag: int, block: int) -> CipherContext:
    """AES-256-CTR whose first counter block is tag + block mod 2^128."""
    return Cipher(algorithms.AES256(key), modes.CTR(counter_bytes(tag, block))).encryptor()


def counter_bytes(tag: int, block: int) -> bytes:
    """Counter block number `block` of the stream that starts at `tag`: big-endian, modulo 2^128."""
    return ((tag + block) % _COUNTER_MODULUS).to_bytes(16, "big")


class NotCopied:
    """Base of objects that must not exist twice: a copy would hand out the same words again, and a pickle would hold the secret."""

    __slots__ = ()

    def _refuse_copy(self) -> NoReturn:
        raise KeyMisuse(
            f"A {type(self).__name__} cannot be copied or pickled: the copy would repeat its words, and a pickle would hold the secret. "
            'Give the other user its own subkey, key.derive("its name"), or open the key again where it is needed.'
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse_copy()

    def __reduce__(self) -> NoReturn:
        self._refuse_copy()

    def __getstate__(self) -> NoReturn:
        self._refuse_copy()

    def __copy__(self) -> NoReturn:
        self._refuse_copy()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse_copy()


class Vault(NotCopied):
    """The secrets of one open key, and its claims. `check` comes before every use."""

    __slots__ = ("__weakref__", "_cmac", "_dependents", "_encryption_key", "_mac_key", "_master", "_process", "claims", "is_private")

    def __init__(self, master: bytes, is_private: bool, claims: Claims) -> None:
        self.is_private = is_private
        self.claims = claims
        self._process = os.getpid()
        self._dependents: weakref.WeakSet[Closable] = weakref.WeakSet()
        self._master = bytearray(master)
        self._mac_key = bytearray(hmac_sha256(master, purpose("label tags", is_private=is_private)))
        self._encryption_key = bytearray(hmac_sha256(master, purpose("keystream", is_private=is_private)))
        self._cmac: CMAC | None = start_cmac(self._mac_key)

    def check(self) -> None:
        """Raises ForkedKey in another process than the one that opened the key, KeyClosed after close()."""
        if os.getpid() != self._process:
            raise ForkedKey(
                f"This noise key was opened in process {self._process} and used in process {os.getpid()}, which would repeat its words. "
                "Open the key after the fork, or give each process a subkey of its own, derived where it is used."
            )
        if self._cmac is None:
            raise KeyClosed(
                "This noise key was closed and its secret erased. Keep it open (with ... as key:) for as long as its streams are used."
            )

    def tag(self, label: Label, lane: int) -> bytes:
        """AES-256-CMAC of the encoded label under K_mac: 16 bytes."""
        self.check()
        assert self._cmac is not None
        mac = self._cmac.copy()
        mac.update(encode_label(label, lane))
        return mac.finalize()

    def exported_master(self) -> bytes:
        """The master secret itself, for sealing alone."""
        self.check()
        return bytes(self._master)

    def subkey_master(self, name: bytes) -> bytes:
        """The master secret of the subkey `name` (an encoded label)."""
        self.check()
        return hmac_sha256(self._master, purpose("subkey", is_private=self.is_private) + name)

    def keystream(self, tag: int, block: int) -> CipherContext:
        """AES-256-CTR under K_enc from counter tag + block."""
        self.check()
        return start_ctr(self._encryption_key, tag, block)

    def keystream_blocks(self) -> CipherContext:
        """AES-256-ECB under K_enc: applied to counter blocks it gives keystream blocks in any order."""
        self.check()
        return start_ecb(self._encryption_key)

    def close_with(self, dependent: Closable) -> None:
        """Close `dependent` when this vault is closed, if it is still alive then."""
        self._dependents.add(dependent)

    def close(self) -> None:
        """Erase the secrets and close what was opened from them. Allowed in any process, and more than once."""
        self._erase()
        for dependent in list(self._dependents):
            dependent.close()

    def _erase(self) -> None:
        self._cmac = None
        for secret in (self._master, self._mac_key, self._encryption_key):
            secret[:] = bytes(len(secret))

    def __del__(self) -> None:
        if hasattr(self, "_cmac"):
            self._erase()
