"""What holds a plan is copied, pickled, sent to another process and hashed as any other value."""

import copy
import io
import multiprocessing
import pickle
import subprocess
import sys

import pytest

import posenc
import posenc.tools

YARN = posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64))


def copies(value):
    return copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))


def plans():
    return [
        posenc.plan(YARN, head_dim=16),
        posenc.plan(posenc.Alibi(), heads=8),
        posenc.plan(posenc.T5(), heads=2),
        posenc.plan(posenc.Sinusoidal(), width=16),
    ]


# --- hashes -------------------------------------------------------------------------------------------------------


def test_equal_plans_hash_alike():
    for plan, again in zip(plans(), plans(), strict=True):
        assert plan == again and hash(plan) == hash(again) and len({plan, again}) == 1


def test_a_copy_finds_what_its_plan_keyed():
    for plan in plans():
        assert all({plan: 1}[made] == 1 for made in copies(plan))


def test_other_plans_hash_otherwise():
    assert len({hash(posenc.plan(posenc.Rope(theta=theta), head_dim=16)) for theta in range(2, 100)}) == 98


def test_a_zero_hashes_alike_whatever_its_sign():
    a, b = (posenc.Plan.of_frequencies(memoryview(each)) for each in (zeros(0.0), zeros(-0.0)))
    assert a == b and hash(a) == hash(b)


def zeros(value):
    import array

    return array.array("d", [1.0, value])


def test_equal_positions_hash_alike():
    for made in (lambda: posenc.positions.range(5, 7), lambda: posenc.positions.packed([0, 3, 8])):
        assert len({made(), made(), copy.copy(made())}) == 1


# --- copies -------------------------------------------------------------------------------------------------------


def test_what_an_engine_makes_of_a_model_is_copied_with_its_notes():
    served = posenc.read_as("llama-3.1-8b", "vllm")
    for made in copies(served):
        assert made.notes == served.notes and made.plan() == served.plan()


def test_what_a_command_line_starts_is_pickled():
    served = posenc.read_as("qwen3-8b", command="llama-server -m m.gguf --rope-scaling yarn --rope-scale 4")
    assert pickle.loads(pickle.dumps(served)).plan() == served.plan()


def test_reports_are_copied_with_their_pages():
    for report in (posenc.translate("qwen3-8b", "vllm"), posenc.extend("qwen3-8b", 65536), posenc.lint("qwen3-8b")):
        for made in copies(report):
            assert made.to_dict() == report.to_dict() and str(made) == str(report)


def test_an_angle_form_is_copied():
    form = posenc.mamba3(16)
    form.gate = "sigmoid"
    for made in copies(form):
        assert (made.plan, made.step, made.gate, made.own_step) == (form.plan, form.step, "sigmoid", form.own_step)


def test_a_damaged_pickle_of_an_angle_form_is_refused():
    form = posenc.carope(8)
    plan, step, *rest = form.__getstate__()
    for state in ((plan, 9, *rest), (plan, step, -1, *rest[1:]), ("plan", step, *rest), (plan,)):
        with pytest.raises((posenc.Error, TypeError)):
            type(form).__new__(type(form)).__setstate__(state)


def reads(plan, model):
    return plan.to_json() == model.plan().to_json()


def test_a_process_that_is_spawned_takes_plans_and_models():
    model = posenc.model("qwen3-8b")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(reads, (model.plan(), model))


# --- PyTorch ------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def pt(torch):
    import posenc.torch

    return posenc.torch


def saved_and_loaded(torch, value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **({"weights_only": False} if torch.__version__ >= "1.13" else {}))


def test_rotations_are_copied_and_saved(torch, pt):
    rotation, x = pt.Rotation(posenc.plan(YARN, head_dim=16)), torch.randn(1, 2, 5, 16)
    for made in (*copies(rotation), saved_and_loaded(torch, rotation)):
        assert torch.equal(made(x), rotation(x))


def test_a_plan_is_copied_after_it_rotated(torch, pt):
    plan, x = posenc.plan(YARN, head_dim=16), torch.randn(1, 2, 5, 16)
    rotated = pt.rotate(plan, x)
    for made in (*copies(plan), saved_and_loaded(torch, plan)):
        assert torch.equal(pt.rotate(made, x), rotated)


def test_rotary_modules_are_copied_and_saved(torch, pt):
    module, ids = pt.RotaryEmbedding("llama-3.1-8b"), torch.arange(5)[None]
    expected = module(torch.zeros(1), ids)
    for made in (*copies(module), saved_and_loaded(torch, module)):
        assert all(map(torch.equal, made(torch.zeros(1), ids), expected))


def test_a_module_that_holds_a_rotation_is_averaged(torch, pt):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.to_q, self.rotation = torch.nn.Linear(16, 16), pt.Rotation(posenc.plan(YARN, head_dim=16))

        def forward(self, x):
            return self.rotation(self.to_q(x))

    layer, x = Layer(), torch.randn(1, 2, 5, 16)
    averaged = torch.optim.swa_utils.AveragedModel(layer)
    averaged.update_parameters(layer)
    assert torch.equal(averaged(x), layer(x))


class Rotated:
    """A data set of rotated texts."""

    def __init__(self, plan):
        self.plan = plan

    def __len__(self):
        return 4

    def __getitem__(self, index):
        import torch

        return self.plan.rotate(torch.ones(1, 1, 3, 16), position_ids=index)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader_take_plans(torch, start):
    data = Rotated(posenc.plan(YARN, head_dim=16))
    loader = torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context=start)
    assert [torch.equal(each[0], data[index]) for index, each in enumerate(loader)] == [True] * 4


# --- transformers -------------------------------------------------------------------------------------------------


@pytest.fixture
def llama(torch):
    pytest.importorskip("transformers")
    from live_models import built

    return built("llama")


def test_a_patched_model_is_copied_and_saved(torch, llama):
    import posenc.hf

    ids = torch.arange(3, 20)[None]
    with torch.no_grad(), posenc.hf.patch(llama):
        expected = llama(ids).logits
        for made in (*copies(llama), saved_and_loaded(torch, llama), torch.optim.swa_utils.AveragedModel(llama)):
            assert torch.equal(made(ids).logits, expected)


def test_a_copy_of_a_patched_model_stays_patched(torch, llama):
    import posenc.hf

    with posenc.hf.patch(llama):
        made = copy.deepcopy(llama)
    assert isinstance(made.model.rotary_emb, posenc.torch.RotaryEmbedding)
    assert not isinstance(llama.model.rotary_emb, posenc.torch.RotaryEmbedding)


def test_a_model_patched_with_posenc_cuda_is_copied(torch, llama):
    pytest.importorskip("posenc_cuda", reason="posenc_cuda is not installed; make python builds it")
    import posenc.hf

    ids = torch.arange(3, 20)[None]
    with torch.no_grad(), posenc.hf.patch(llama, backend="emulated"):
        expected = llama(ids).logits
        for made in copies(llama):
            assert torch.allclose(made(ids).logits, expected, atol=1e-5)


def test_a_saved_model_is_loaded_where_posenc_was_not_imported(torch, pt, tmp_path):
    torch.save(pt.RotaryEmbedding("llama-3.1-8b"), tmp_path / "module.pt")
    loads = "import sys, torch; print(torch.load(sys.argv[1], weights_only=False))"
    said = subprocess.run([sys.executable, "-c", loads, tmp_path / "module.pt"], capture_output=True, text=True)
    assert "RotaryEmbedding(llama-3.1-8b" in said.stdout, said.stderr
