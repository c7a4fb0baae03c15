"""What kept totals reveal: cells they fix alone, and together with other releases."""

from holdfast.exposure.cells import Exposure, exposure

__all__ = ["Exposure", "exposure"]
