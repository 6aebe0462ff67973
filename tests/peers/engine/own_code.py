"""Families whose code stands beside their weights, and not in transformers: a configuration of any keys stands for theirs."""

from transformers import AutoConfig, PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


def register(family):
    if family not in CONFIG_MAPPING:
        AutoConfig.register(family, type("Own", (PretrainedConfig,), {"model_type": family}))
