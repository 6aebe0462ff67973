//! What the crate promises.

use std::path::Path;

use posenc::{
    Attention, Engine, ErrorKind, Evidence, Extend, Geometry, LearnedTable, Mask, Models, Plan,
    Positions, Side, Table, Value, json,
};

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    std::fs::read(folder.join(name)).unwrap()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

fn rope(scheme: Value, head_dim: i64) -> Plan {
    let posenc = Engine::load().unwrap();
    posenc.plan(&scheme, Geometry { head_dim, ..Geometry::default() }).unwrap()
}

fn doubles(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn yarn_rotates_as_transformers_does() {
    let golden: Value = serde_json::from_slice(&data("golden/rotation.json")).unwrap();
    let record = golden["records"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["name"] == "llama-half-yarn")
        .unwrap();
    let asked = &record["rope_parameters"];
    let original = &asked["original_max_position_embeddings"];
    let yarn = json!({"type": "yarn", "factor": asked["factor"],
        "original_max_position_embeddings": original});
    let head_dim = record["head_dim"].as_i64().unwrap();
    let plan = rope(json!({"type": "rope", "scaling": yarn}), head_dim);
    let q: Vec<f64> = doubles(&record["q"]).iter().map(|x| f64::from(*x as f32)).collect();
    let ids: Vec<i64> = doubles(&record["positions"]).iter().map(|x| *x as i64).collect();
    let rotated = plan.rotate(&q, head_dim as usize, ids, Side::Query).unwrap();
    assert!(apart(&rotated, &doubles(&record["q_out_f64"])) < 1e-9);
}

#[test]
fn frequencies_of_scalings() {
    let yarn = json!({"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768});
    let plan = rope(json!({"type": "rope", "rope_theta": 1e6, "scaling": yarn}), 128);
    let rotate = plan.info().rotate.as_ref().unwrap();
    assert_eq!(rotate.frequencies[0][..3], [1.0, 0.8058421877614819, 0.6493816315762113]);
    assert_eq!(rotate.frequencies[0][63], 3.102344401879299e-7);
    assert_eq!(rotate.amplitude, 1.138629436111989);
    let llama3 = json!({"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 8192});
    let plan = rope(json!({"type": "rope", "rope_theta": 5e5, "scaling": llama3}), 128);
    let frequencies = &plan.info().rotate.as_ref().unwrap().frequencies[0];
    assert_eq!(frequencies[32], 0.0005248461609929547);
    assert_eq!(frequencies[63], 3.068925988914511e-7);
}

#[test]
fn a_rotation_keeps_norms_and_is_undone() {
    let plan = rope(json!({"type": "rope"}), 8);
    let q = Engine::load().unwrap().normals(1, 3 * 6 * 8).unwrap();
    let rotated = plan.rotate(&q, 8, 5..11, Side::Query).unwrap();
    for (before, after) in q.chunks(8).zip(rotated.chunks(8)) {
        let square = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        assert!((square(before) - square(after)).abs() < 1e-12);
    }
    let back = plan.rotate_back(&rotated, 8, [5, 6, 7, 8, 9, 10], Side::Query).unwrap();
    assert!(apart(&back, &q) < 1e-14);
    let angles = plan.angles(5..7).unwrap();
    assert_eq!(angles.len(), 8);
    assert!((angles[0] - 5.0).abs() < 1e-15);
}

#[test]
fn what_is_added() {
    let posenc = Engine::load().unwrap();
    let size = Geometry { width: 4, ..Geometry::default() };
    let plan = posenc.plan(&json!({"type": "sinusoidal"}), size).unwrap();
    let vectors = plan.vectors(1..2, 4).unwrap();
    let (one, slow) = (1.0f64, 0.01f64);
    assert!(apart(&vectors, &[one.sin(), one.cos(), slow.sin(), slow.cos()]) < 1e-15);
    let sum = plan.add(&[1.0; 4], 4, 1..2).unwrap();
    assert!((sum[0] - 1.0 - vectors[0]).abs() < 1e-15);

    let size = Geometry { width: 2, ..Geometry::default() };
    let mut learned = posenc.plan(&json!({"type": "learned", "rows": 2}), size).unwrap();
    let table = Table { values: &[1.0, 2.0, 3.0, 4.0], shape: &[2, 2] };
    learned.set_table(LearnedTable::Add, table).unwrap();
    assert_eq!(learned.vectors([1], 2).unwrap(), [3.0, 4.0]);
}

#[test]
fn bias_and_attention() {
    let posenc = Engine::load().unwrap();
    let size = Geometry { heads: 2, head_dim: 4, ..Geometry::default() };
    let plan = posenc.plan(&json!({"type": "alibi"}), size).unwrap();
    let slope = plan.info().bias.as_ref().unwrap().slopes.as_ref().unwrap()[0];
    let bias = plan.bias(2, [3], 0..4).unwrap();
    assert!(apart(&bias[..4], &[-3.0 * slope, -2.0 * slope, -slope, 0.0]) < 1e-15);

    let (q, k) = (posenc.normals(1, 48).unwrap(), posenc.normals(2, 24).unwrap());
    let twice = [k.clone(), k.clone()].concat();
    let shared = plan.attend(&Attention::new([&q, &k, &k], 2, 4, 0..6)).unwrap();
    let mut inputs = Attention::new([&q, &twice, &twice], 2, 4, 0..6);
    assert_eq!(shared.out, plan.attend(&inputs).unwrap().out);
    assert_eq!(shared.logits[1], f64::NEG_INFINITY);
    inputs.mask.window = 1;
    assert_eq!(plan.attend(&inputs).unwrap().out, twice);
    inputs.mask =
        Mask { causal: false, window: 0, keep: vec![true, false, true, true, true, true] };
    let both = plan.attend(&inputs).unwrap().logits;
    assert!(both[1] == f64::NEG_INFINITY && both[2].is_finite());
    inputs.mask.keep.pop();
    assert_eq!(plan.attend(&inputs).unwrap_err().kind(), ErrorKind::Misuse);
}

#[test]
fn content() {
    let posenc = Engine::load().unwrap();
    let x = posenc.normals(1, 12).unwrap();
    let gates = Table { values: &[-1.0, -2.0, -3.0], shape: &[1, 1, 3] };
    let inputs = Attention::new([&x, &x, &x], 1, 4, 0..3);
    let scheme = json!({"type": "forgetting"});
    let made = posenc.attend(&scheme, &[("log_gates", gates)], &inputs).unwrap();
    for row in made.weights.chunks(3) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
    assert!(posenc.attend(&scheme, &[("log_goats", gates)], &inputs).is_err());
}

#[test]
fn positions() {
    let posenc = Engine::load().unwrap();
    let Positions::Ids(ids) = posenc.positions_of(&[false, true, true]).unwrap() else { panic!() };
    assert_eq!(ids[0][2], 1);
    let patches = posenc.patches(2, 3).unwrap();
    assert_eq!(patches, vec![vec![0, 0, 0, 1, 1, 1], vec![0, 1, 2, 0, 1, 2]].into());
    assert_eq!(patches.count(), 6);
}

#[test]
fn errors_say_whose_fault_and_the_cure() {
    let posenc = Engine::load().unwrap();
    let planned = |scheme: Value, head_dim| {
        posenc.plan(&scheme, Geometry { head_dim, heads: 2, ..Geometry::default() }).map(drop)
    };
    let plan = rope(json!({"type": "rope"}), 8);
    let rotated = |count, at: Positions| plan.rotate(&vec![0.0; count], 8, at, Side::Key).map(drop);
    let cases = [
        (ErrorKind::Refused, "head_dim must be even, got 7", planned(json!({"type": "rope"}), 7)),
        (ErrorKind::Refused, "ropes", planned(json!({"type": "ropes"}), 8)),
        (ErrorKind::Refused, "thetas", planned(json!({"type": "rope", "thetas": 1}), 8)),
        (ErrorKind::Refused, "; set head_dim", planned(json!({"type": "rope"}), 0)),
        (ErrorKind::Refused, "; set grid_height and", planned(json!({"type": "log_cpb"}), 0)),
        (ErrorKind::Misuse, "47 numbers", rotated(47, (0..6).into())),
        (ErrorKind::Refused, "-1", rotated(8, [-1].into())),
        (ErrorKind::Misuse, "every axis", rotated(8, vec![vec![0], vec![0, 1]].into())),
        (ErrorKind::Misuse, "too many", rotated(8, Positions::Range { first: 0, count: 1 << 60 })),
    ];
    for (kind, says, result) in cases {
        let error = result.unwrap_err();
        assert!(error.kind() == kind && error.message().contains(says), "{error:?}");
    }
}

#[test]
fn errors_have_their_parts() {
    let posenc = Engine::load().unwrap();
    let refused = |scheme: Value, head_dim| {
        posenc.plan(&scheme, Geometry { head_dim, heads: 2, ..Geometry::default() }).unwrap_err()
    };
    let odd = refused(json!({"type": "rope"}), 7);
    assert_eq!((odd.place(), odd.rule()), (Some("rope"), Some("head_dim must be even")));
    assert_eq!((odd.got(), odd.cure()), (Some("7"), Some("set rotary_dim or pad the head")));
    assert_eq!(refused(json!({"type": "rope"}), 0).cure(), Some("set head_dim"));
    let grid = refused(json!({"type": "log_cpb"}), 0);
    assert!(grid.cure().unwrap().starts_with("set grid_height and grid_width: "), "{grid:?}");

    let plan = rope(json!({"type": "rope"}), 8);
    let own = plan.rotate(&[0.0; 47], 8, 0..6, Side::Key).unwrap_err();
    assert_eq!((own.place(), own.rule(), own.got(), own.cure()), (None, None, None, None));
}

#[test]
fn lists_say_what_there_is() {
    let posenc = Engine::load().unwrap();
    assert_eq!(posenc.version(), env!("CARGO_PKG_VERSION"));
    let rope = posenc.schemes().iter().find(|scheme| scheme.name == "rope").unwrap();
    assert_eq!(rope.fields[0].default, json!(10000.0));
    assert!(posenc.scalings().len() > 7 && posenc.content().len() > 4);
}

#[test]
fn threads_share_an_engine() {
    fn shared<T: Send + Sync>(_: &T) {}
    let posenc = Engine::load().unwrap();
    let plan = rope(json!({"type": "rope"}), 8);
    shared(&posenc);
    shared(&plan);
    let q = posenc.normals(1, 64 * 8).unwrap();
    let want = plan.rotate(&q, 8, 0..64, Side::Query).unwrap();
    std::thread::scope(|all| {
        for _ in 0..4 {
            all.spawn(|| {
                for _ in 0..5 {
                    let size = Geometry { head_dim: 8, ..Geometry::default() };
                    posenc.plan(&json!({"type": "rope"}), size).unwrap();
                    assert_eq!(plan.rotate(&q, 8, 0..64, Side::Query).unwrap(), want);
                }
            });
        }
    });
}

#[test]
fn models_explain_and_plan() {
    let models = Models::load().unwrap();
    let model = models.open("llama-3.1-8b").unwrap();
    let said = model.explain(131072).unwrap();
    assert_eq!(said.groups[0].scheme["scaling"]["type"], "llama3");
    let plan = model.plan(31, 131072).unwrap();
    let told = doubles(&said.json["groups"][0]["plan"]["rotate"]["frequencies"][0]);
    assert_eq!(plan.info().rotate.as_ref().unwrap().frequencies[0], told);
    assert!(model.plan(32, 0).unwrap_err().message().contains("32"));
    // A plan outlives what it came from.
    drop((model, models));
    assert_eq!(plan.angles([1]).unwrap()[0], 1.0);
}

#[test]
fn readers_refuse() {
    let models = Models::load().unwrap();
    let deep = "[".repeat(1 << 20);
    for bytes in ["", "{", "[]", "{\"model_type\": 1}", "GGUF\0", &deep] {
        let error = models.read(bytes.as_bytes(), "config.json").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
}

#[test]
fn the_doctor_judges_files_and_a_line() {
    let models = Models::load().unwrap();
    let bytes = data("doctor/llama-3.1-without-scaling.json");
    let evidence = [
        Evidence::from("llama-3.1-8b"),
        Evidence::File { name: "config.json", bytes: &bytes },
        Evidence::from("llama-server -m m.gguf -c 65536 -np 4"),
    ];
    let said = models.doctor(&evidence, &[], 0).unwrap();
    assert!(said.verdict.starts_with("Wrong in config.json: rope_scaling is none"), "{}", said.verdict);
    assert_eq!(said.evidence[2].kind, "command");
    assert!(said.findings.iter().any(|one| {
        one.code == "rope_scaling" && one.place == "config.json" && !one.finding.layers.is_empty()
    }));
    let broken = models.read(&bytes, "config.json").unwrap();
    let llama = models.open("llama-3.1-8b").unwrap();
    assert!(!llama.diff(&broken, 0).unwrap().equal);
    let elsewhere = Models::load().unwrap().open("llama-3.1-8b").unwrap();
    assert_eq!(llama.diff(&elsewhere, 0).unwrap_err().kind(), ErrorKind::Misuse);
    assert!(models.doctor(&[], &[], 0).is_err());
}

#[test]
fn lint_translate_extend() {
    let models = Models::load().unwrap();
    let bytes = data("doctor/deepseek-r1-0528-qwen3-8b.json");
    let qwen = models.read(&bytes, "config.json").unwrap();
    let found = qwen.lint(Some("sglang"), 0).unwrap();
    assert!(found.iter().any(|one| one.severity == "error" && !one.cure.is_empty()));
    let llama = models.open("llama-3.1-8b").unwrap();
    llama.lint(None, 0).unwrap();
    let target = llama.translate("vllm", 0).unwrap().target;
    assert!(target.as_str().unwrap().contains("\"rope_type\":\"llama3\""));
    let longer = llama.extend(262144, Extend::default()).unwrap();
    assert!(longer.options.iter().any(|option| option.name == longer.recommended));
    let nobody = Extend { engine: Some("nobody"), ..Extend::default() };
    assert!(llama.extend(262144, nobody).is_err());
    let line = "llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072";
    let asked = models.open("qwen3-8b").unwrap().diff_command(line, 0).unwrap();
    assert_eq!(asked.findings[0].code, "rope_scaling");
    assert_eq!(llama.read_by("vllm", 0).unwrap()["engine"], "vllm");
    assert!(models.bundled().unwrap().len() > 20 && models.engines().unwrap().len() > 3);
}
