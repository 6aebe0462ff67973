# What the stub writer takes in the place of signatures whose types C++ does not know: nanobind's pattern file. Names and defaults
# are those of the binding, to which a test holds them (tests/test_types.py).

_posenc.__prefix__:
    from collections.abc import Iterable
    from typing import Any, Literal, overload

    import posenc.models
    import posenc.reports
    import posenc.values
    from numpy import float32, float64, int64, uint64
    from numpy.typing import NDArray
    from posenc.types import Array, ArrayLike, PositionIds, Side, Tensor

    __version__: str

_posenc.Value.tables$:
    @property
    def tables(self) -> list[str]: ...

_posenc.Value.replace$:
    def replace(self, arg: dict[str, Any], /) -> Value: ...

_posenc.Value.fields$:
    def fields(self) -> dict[str, Any]:
        \doc

_posenc.Value.table$:
    def table(self, name: str) -> NDArray[float64] | None:
        \doc

_posenc.make_value$:
    def make_value(kind: str, name: str, fields: dict[str, Any]) -> Value: ...

_posenc.value_classes$:
    def value_classes() -> list[tuple[str, str, str]]:
        \doc

_posenc.(Positions|Plan|Model|AngleForm).__deepcopy__$:
    def __deepcopy__(self, memo: Any) -> \1: ...

_posenc.(Positions|Plan|AngleForm).__getstate__$:
    def __getstate__(self) -> tuple[Any, ...]: ...

_posenc.(Positions|Plan|AngleForm).__setstate__$:
    def __setstate__(self, arg: tuple[Any, ...], /) -> None: ...

_posenc.Positions.numpy$:
    def numpy(self) -> NDArray[int64]:
        \doc

_posenc.Positions.__hash__$:
    def __hash__(self) -> int: ...

_posenc.vision_rules$:
    def vision_rules() -> list[tuple[str, str]]:
        \doc

_posenc.positions_ids$:
    def positions_ids(ids: PositionIds) -> Positions:
        \doc

_posenc.positions_signed_ids$:
    def positions_signed_ids(ids: ArrayLike | Sequence[Any]) -> Positions:
        \doc

_posenc.positions_from_mask$:
    def positions_from_mask(mask: ArrayLike | Sequence[Any], cached: int = 0, padding: int = 0) -> Positions:
        \doc

_posenc.positions_packed$:
    def positions_packed(cu_seqlens: ArrayLike | Sequence[int]) -> Positions:
        \doc

_posenc.positions_vision$:
    def positions_vision(input_ids: ArrayLike | Sequence[int], image_grid_thw: ArrayLike | Sequence[Any] | None = None, video_grid_thw: ArrayLike | Sequence[Any] | None = None, *, rule: str = 'qwen2_vl', image_token_id: int = 151655, video_token_id: int = 151656, audio_token_id: int = -1, spatial_merge_size: int = 2, advance: str | None = None, step: str | None = None, tokens_per_second: float | None = None, seconds_per_grid: Sequence[float] | ArrayLike | None = None) -> tuple[Positions, int]:
        \doc

_posenc.Plan.rotate$:
    @overload
    def rotate(self, q: Array, k: None = None, position_ids: PositionIds | None = None, *, side: Side = 'query', layout: str = '', threads: int = 0) -> Array:
        \doc

    @overload
    def rotate(self, q: Array, k: Array, position_ids: PositionIds | None = None, *, side: Side = 'query', layout: str = '', threads: int = 0) -> tuple[Array, Array]: ...

_posenc.Plan.rotate_$:
    def rotate_(self, q: ArrayLike, k: ArrayLike | None = None, position_ids: PositionIds | None = None, *, side: Side = 'query', layout: str = '', threads: int = 0) -> None:
        \doc

_posenc.Plan.(rotate_inverse|rotate_transpose)$:
    def \1(self, x: Array, position_ids: PositionIds | None = None, *, side: Side = 'query', layout: str = '', threads: int = 0) -> Array:
        \doc

_posenc.Plan.(rotate_inverse_|rotate_transpose_)$:
    def \1(self, x: ArrayLike, position_ids: PositionIds | None = None, *, side: Side = 'query', layout: str = '', threads: int = 0) -> None:
        \doc

_posenc.Plan.cos_sin$:
    @overload
    def cos_sin(self, position_ids: Tensor, *, seq: int = 0, dtype: Any = None, halves: bool = False, side: Side = 'query', threads: int = 0) -> tuple[Tensor, Tensor]:
        \doc

    @overload
    def cos_sin(self, position_ids: PositionIds | None = None, *, seq: int = 0, dtype: Any = None, halves: bool = False, side: Side = 'query', threads: int = 0) -> tuple[NDArray[Any], NDArray[Any]]: ...

_posenc.Plan.(angles|position_vectors)$:
    @overload
    def \1(self, position_ids: Tensor, *, seq: int = 0, dtype: Any = None, threads: int = 0) -> Tensor:
        \doc

    @overload
    def \1(self, position_ids: PositionIds | None = None, *, seq: int = 0, dtype: Any = None, threads: int = 0) -> NDArray[Any]: ...

_posenc.Plan.add$:
    def add(self, embedding: Array, position_ids: PositionIds | None = None, *, threads: int = 0) -> Array:
        \doc

_posenc.Plan.add_$:
    def add_(self, embedding: ArrayLike, position_ids: PositionIds | None = None, *, threads: int = 0) -> None:
        \doc

_posenc.Plan.add_backward$:
    def add_backward(self, out_gradient: Array, position_ids: PositionIds | None = None) -> tuple[Array, Array | None]:
        \doc

_posenc.Plan.bias$:
    @overload
    def bias(self, queries: Tensor, keys: PositionIds | None = None, *, heads: int = 0, dtype: Any = None, threads: int = 0) -> Tensor:
        \doc

    @overload
    def bias(self, queries: PositionIds, keys: PositionIds | None = None, *, heads: int = 0, dtype: Any = None, threads: int = 0) -> NDArray[Any]: ...

_posenc.Plan.frequency_gradient$:
    def frequency_gradient(self, rotated: Array, gradient: Array, position_ids: PositionIds | None = None, *, layout: str = '') -> Array:
        \doc

_posenc.Plan.(rotate_by|rotate_by_transpose|rotate_by_inverse)$:
    def \1(self, x: Array, angles: ArrayLike, *, side: Side = 'query', layout: str = '', threads: int = 0) -> Array:
        \doc

_posenc.Plan.rotate_by_$:
    def rotate_by_(self, x: ArrayLike, angles: ArrayLike, *, side: Side = 'query', layout: str = '', threads: int = 0) -> None:
        \doc

_posenc.Plan.(vectors_at|angles_at)$:
    @overload
    def \1(self, at: Tensor, *, dtype: Any = None, threads: int = 0) -> Tensor:
        \doc

    @overload
    def \1(self, at: ArrayLike | Sequence[Any], *, dtype: Any = None, threads: int = 0) -> NDArray[Any]: ...

_posenc.Plan.add_at$:
    def add_at(self, embedding: Array, at: ArrayLike | Sequence[Any], *, threads: int = 0) -> Array:
        \doc

_posenc.Plan.angle_gradient$:
    def angle_gradient(self, rotated: ArrayLike, gradient: ArrayLike, angles: Array, *, layout: str = '') -> Array:
        \doc

_posenc.Plan.inv_freq$:
    @property
    def inv_freq(self) -> NDArray[float64]:
        \doc

_posenc.Plan.turns$:
    @property
    def turns(self) -> NDArray[uint64]:
        \doc

_posenc.Plan.pairing$:
    @property
    def pairing(self) -> Literal['halves', 'interleaved']:
        \doc

_posenc.Plan.features$:
    @property
    def features(self) -> frozenset[str]:
        \doc

_posenc.Plan.refused_by$:
    def refused_by(self, room: str) -> frozenset[str]:
        \doc

_posenc.Plan.valid$:
    @property
    def valid(self) -> tuple[int, int | None] | None:
        \doc

_posenc.Plan.of_frequencies$:
    @staticmethod
    def of_frequencies(inv_freq: ArrayLike, *, pairing: Literal['halves', 'interleaved'] | str = 'halves', first_dim: int = 0, blocks: int = 1, attention_factor: float = 1.0) -> Plan:
        \doc

_posenc.Plan.with_table$:
    def with_table(self, part: str, values: ArrayLike) -> Plan:
        \doc

_posenc.Plan.table$:
    def table(self, part: str) -> NDArray[float64] | None:
        \doc

_posenc.Plan.query_scale$:
    def query_scale(self, position_ids: Sequence[int], heads: int = 1) -> NDArray[float64]:
        \doc

_posenc.(Plan|Model)._repr_html_$:
    def _repr_html_(self) -> str: ...

_posenc.(Plan|Model).__repr__$:
    def __repr__(self) -> str: ...

_posenc.Plan.__hash__$:
    def __hash__(self) -> int: ...

_posenc.(Plan|Model).to_dict$:
    def to_dict(self) -> dict[str, Any]:
        \doc

_posenc.Plan.plot$:
    def plot(self, kind: Literal['wavelengths', 'bias'] = 'wavelengths', ax: Any = None) -> Any:
        \doc

_posenc.Plan.same_as$:
    def same_as(self, other: Plan, *, at: int = 0) -> posenc.reports.Report:
        \doc

_posenc.plan$:
    def plan(scheme: Value, *, head_dim: int = 0, heads: int = 0, kv_heads: int = 0, width: int = 0, length: int = 0, grid_height: int = 0, grid_width: int = 0, angles: str = 'exact') -> Plan:
        \doc

_posenc.attend$:
    def attend(q: Array, k: ArrayLike, v: ArrayLike, plan: Plan | None = None, *, scheme: posenc.values.Value | None = None, position_ids: PositionIds | None = None, key_position_ids: PositionIds | None = None, causal: bool = True, window: int = 0, chunk: int = 0, prefix: int = 0, keep: ArrayLike | Sequence[Any] | None = None, blocks: ArrayLike | Sequence[Any] | None = None, keys: ArrayLike | Sequence[Any] | None = None, sink_logits: ArrayLike | Sequence[float] | None = None, query_profiles: ArrayLike | None = None, key_profiles: ArrayLike | None = None, out: ArrayLike | None = None, layout: str = '', threads: int = 0, reference: bool = False, logits: ArrayLike | None = None, weights: ArrayLike | None = None, remainder: ArrayLike | None = None, log_sums: ArrayLike | None = None, allow_bfloat16_products: bool = True) -> Array:
        \doc

_posenc.attend_backward$:
    def attend_backward(q: Array, k: ArrayLike, v: ArrayLike, out_gradient: ArrayLike, plan: Plan | None = None, *, scheme: posenc.values.Value | None = None, parameters: Sequence[str] = [], position_ids: PositionIds | None = None, key_position_ids: PositionIds | None = None, causal: bool = True, window: int = 0, chunk: int = 0, prefix: int = 0, keep: ArrayLike | Sequence[Any] | None = None, blocks: ArrayLike | Sequence[Any] | None = None, keys: ArrayLike | Sequence[Any] | None = None, sink_logits: ArrayLike | Sequence[float] | None = None, query_profiles: ArrayLike | None = None, key_profiles: ArrayLike | None = None, layout: str = '', threads: int = 0, remainder_gradient: ArrayLike | None = None, log_sums: ArrayLike | None = None, dots: ArrayLike | None = None) -> dict[str, Array]:
        \doc

_posenc.KvCache.append$:
    def append(self, sequences: Sequence[int], k: ArrayLike, v: ArrayLike, plan: Plan, position_ids: PositionIds | None = None, *, layout: str = '', threads: int = 0) -> None:
        \doc

_posenc.KvCache.attend$:
    def attend(self, sequences: Sequence[int], q: Array, plan: Plan, *, causal: bool = True, window: int = 0, chunk: int = 0, prefix: int = 0, keys: ArrayLike | Sequence[Any] | None = None, sink_logits: ArrayLike | Sequence[float] | None = None, query_profiles: ArrayLike | None = None, key_profiles: ArrayLike | None = None, out: ArrayLike | None = None, layout: str = '', threads: int = 0) -> Array:
        \doc

_posenc.KvCache.attend_part$:
    def attend_part(self, sequences: Sequence[int], q: Array, position_ids: PositionIds, plan: Plan, *, causal: bool = True, window: int = 0, chunk: int = 0, prefix: int = 0, layout: str = '', threads: int = 0) -> tuple[Array, Array]:
        \doc

_posenc.Model.file_warnings$:
    @property
    def file_warnings(self) -> list[tuple[str, str]]:
        \doc

_posenc.Model.notes$:
    @property
    def notes(self) -> list[tuple[str, str]]:
        \doc

_posenc.Model.(groups|warnings)$:
    @property
    def \1(self) -> list[posenc.reports.Record]:
        \doc

_posenc.Model.schemes$:
    def schemes(self, group: int = 0) -> list[posenc.values.Value]:
        \doc

_posenc.Model.explain$:
    def explain(self, *, at: int = 0, layer: int | None = None) -> posenc.models.Explanation:
        \doc

_posenc.Model.plot$:
    def plot(self, ax: Any = None) -> Any:
        \doc

_posenc.Model.__copy__$:
    def __copy__(self) -> Model: ...

_posenc.Model.__reduce__$:
    def __reduce__(self) -> tuple[Any, ...]:
        \doc

_posenc.Model.files$:
    @property
    def files(self) -> list[tuple[str, str, str]]:
        \doc

_posenc.Model.group_schemes$:
    def group_schemes(self, arg: int, /) -> list[Value]:
        \doc

_posenc.Model.pairs$:
    def pairs(self, at: int = 0, group: int = 0) -> list[tuple[int, int, float, float, float, float, float]]:
        \doc

_posenc.doctor_json$:
    def doctor_json(evidence: list[Any], engines: Sequence[str], length: int = 0) -> str: ...

_posenc.read_as$:
    def read_as(model: Model, engine: str, length: int = 0) -> tuple[Model, list[tuple[str, str]], str, int]: ...

_posenc.read_command$:
    def read_command(model: Model, command: str) -> tuple[Model, list[tuple[str, str]], str, int]: ...

_posenc.read_trainer$:
    def read_trainer(model: Model, settings: str) -> tuple[Model, list[tuple[str, str]], str, int]: ...

_posenc.mend_json$:
    def mend_json(config: str) -> tuple[str, str]: ...

_posenc.identify_json$:
    def identify_json(after: ArrayLike, before: ArrayLike | None = None, position_ids: PositionIds | None = None, repeated: bool = False, model: Model | None = None, layer: int = 0, part: str | None = None) -> str: ...

_posenc.identify_table_json$:
    def identify_table_json(cos: ArrayLike, sin: ArrayLike) -> str: ...

_posenc.identify_vectors_json$:
    def identify_vectors_json(values: ArrayLike) -> str: ...

_posenc.check_positions_json$:
    def check_positions_json(found: ArrayLike | Sequence[Any], expected: Positions, keep: ArrayLike | Sequence[Any] | None = None) -> str: ...

_posenc.normals$:
    def normals(seed: int, count: int, first: int = 0) -> NDArray[float64]:
        \doc

_posenc.engines$:
    def engines() -> list[tuple[str, str, str, str]]:
        \doc

_posenc.alibi_slopes$:
    def alibi_slopes(heads: int, max_bias: float = 8.0, rounding: Literal['exact', 'bfloat16'] = 'exact') -> NDArray[float64]:
        \doc

_posenc.t5_bucket$:
    @overload
    def t5_bucket(relative: int, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = False) -> int:
        \doc

    @overload
    def t5_bucket(relative: Iterable[int], num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = False) -> list[int]: ...

_posenc.deberta_bucket$:
    @overload
    def deberta_bucket(relative: int, position_buckets: int, max_position: int) -> int:
        \doc

    @overload
    def deberta_bucket(relative: Iterable[int], position_buckets: int, max_position: int) -> list[int]: ...

_posenc.fire_bias$:
    @overload
    def fire_bias(scheme: posenc.values.Value, queries: Tensor, keys: PositionIds | None = None, *, dtype: Any = None) -> Tensor:
        \doc

    @overload
    def fire_bias(scheme: posenc.values.Value, queries: PositionIds, keys: PositionIds | None = None, *, dtype: Any = None) -> NDArray[Any]: ...

_posenc.kerple_gradients$:
    def kerple_gradients(scheme: posenc.values.Value, bias_gradient: ArrayLike) -> tuple[NDArray[float64], NDArray[float64]]:
        \doc

_posenc.AngleForm.angles$:
    def angles(self, said: Array, *, gate: ArrayLike | None = None, start: ArrayLike | None = None, dtype: Any = None) -> tuple[Array, Array]:
        \doc

_posenc.AngleForm.gradient$:
    def gradient(self, gradient: ArrayLike, said: Array, *, gate: ArrayLike | None = None, start: ArrayLike | None = None) -> dict[str, Array]:
        \doc

_posenc.FileTensor.shape$:
    @property
    def shape(self) -> tuple[int, ...]:
        \doc

_posenc.FileTensor.numpy$:
    @overload
    def numpy(self, dtype: Literal['float32'] = 'float32') -> NDArray[float32]:
        \doc

    @overload
    def numpy(self, dtype: Literal['float64']) -> NDArray[float64]: ...

_posenc.rekey$:
    def rekey(keys: Array, plan_from: Plan, from_positions: PositionIds | None, plan_to: Plan | None = None, to_positions: PositionIds | None = None, *, side: Literal['key', 'value'] = 'key', layout: str = '', threads: int = 0) -> Array:
        \doc

_posenc.rekey_$:
    def rekey_(keys: ArrayLike, plan_from: Plan, from_positions: PositionIds | None, plan_to: Plan | None = None, to_positions: PositionIds | None = None, *, side: Literal['key', 'value'] = 'key', layout: str = '', threads: int = 0) -> None:
        \doc

_posenc.rekey_pages_$:
    def rekey_pages_(keys: ArrayLike, pages: Sequence[int], tokens: Sequence[int], plan_from: Plan, from_positions: PositionIds | None, plan_to: Plan | None, to_positions: PositionIds | None, side: str, layout: str, threads: int) -> None: ...

_posenc.rekey_coded_$:
    def rekey_coded_(codes: ArrayLike, scales: ArrayLike | None, code: str, block: int, keep_scales: bool, pages: Sequence[int] | None, tokens: Sequence[int] | None, plan_from: Plan, from_positions: PositionIds | None, plan_to: Plan | None, to_positions: PositionIds | None, side: str, layout: str, threads: int) -> None: ...

_posenc.rekey_q8_0_$:
    def rekey_q8_0_(blocks: ArrayLike, kv_heads: int, head_dim: int, plan_from: Plan, from_positions: PositionIds | None, plan_to: Plan | None, to_positions: PositionIds | None, side: str, threads: int) -> None: ...

_posenc.key_header$:
    def key_header(plan: Plan, position_ids: PositionIds | None, shape: Sequence[int], dtype: Literal['float64', 'float32', 'float16', 'bfloat16', 'e4m3', 'int8', 'q8_0'] | str = 'float32', *, side: Literal['key', 'value'] = 'key', layer: int | None = None) -> KeyHeader:
        \doc

_posenc.KeyHeader.__eq__$:
    def __eq__(self, arg: object, /) -> bool: ...

_posenc.read_tensors$:
    def read_tensors(path: str) -> dict[str, FileTensor]:
        \doc

_posenc.Layout.indices$:
    def indices(self, rank: int) -> NDArray[int64]:
        \doc

_posenc.Layout.__eq__$:
    def __eq__(self, arg: object, /) -> bool: ...

_posenc.(convolve_positions)$:
    def \1(x: Array, weight: ArrayLike, bias: ArrayLike | None = None, *, after: str = 'none', adds: bool = True, grid: tuple[int, int] | None = None, kept: int = 0, keep: ArrayLike | Sequence[Any] | None = None) -> Array:
        \doc

_posenc.(convolve_positions_gradients)$:
    def \1(out_gradient: ArrayLike, x: Array, weight: ArrayLike, bias: ArrayLike | None = None, *, after: str = 'none', adds: bool = True, grid: tuple[int, int] | None = None, kept: int = 0, keep: ArrayLike | Sequence[Any] | None = None) -> dict[str, Array]:
        \doc

_posenc.(resample_grid)$:
    def \1(table: Array, from_grid: tuple[int, int], to_grid: tuple[int, int], *, interpolation: str = 'bilinear', align_corners: bool = False, antialias: bool = False, zeros_outside: bool = False, spatial_merge_size: int = 1, kept_rows: int = 0, offset: float = 0.0) -> Array:
        \doc

_posenc.(resample_grid_gradient)$:
    def \1(out_gradient: Array, from_grid: tuple[int, int], to_grid: tuple[int, int], *, interpolation: str = 'bilinear', align_corners: bool = False, antialias: bool = False, zeros_outside: bool = False, spatial_merge_size: int = 1, kept_rows: int = 0, offset: float = 0.0) -> Array:
        \doc
