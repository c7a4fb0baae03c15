"""What a key hides from everyone, for the tests of how it hides it."""

from __future__ import annotations

from holdfast.randomness.keys import NoiseKey
from holdfast.randomness.vault import Vault


def vault_of(key: NoiseKey) -> Vault:
    return key._vault
