# SPDX-License-Identifier: Apache-2.0
"""Real clients, as they come from their registry, against a server on the real model."""
