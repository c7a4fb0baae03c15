"""What a key hides from everyone, for the tests of how it hides it."""

from __future__ import annotations

from holdfast.randomness.keys import NoiseKey
from holdfast.randomness.vault import Vault


def vault_of(key: NoiseKey) -> Vault:
    return key._vault


def secrets_of(key: NoiseKey) -> list[bytearray]:
    """The master secret first, then the two keys made from it: the buffers themselves, which closing erases."""
    vault = vault_of(key)
    return [vault._master, vault._mac_key, vault._encryption_key]
