"""A noise key stored across an interruption: encrypted under two secrets, one that the user keeps and one made for this key alone.

    sealed = version byte, 16 bytes of salt, 12 bytes of nonce, AES-256-GCM(master secret) under HMAC-SHA-256(second, scrypt(secret, salt))

The version byte and whether the key is private are authenticated. Without the second secret, 256 random bits that are kept apart from the
sealed key and destroyed with it, nobody opens it, whoever has the user's secret.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from holdfast.errors import InvalidParameter, KeyMisuse
from holdfast.randomness.vault import KEY_BYTES, STREAM_VERSION, hmac_sha256, purpose

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
