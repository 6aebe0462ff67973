use posenc_vectors::{flat, judge, load, DType};

const OPERATIONS: [&str; 10] = ["frequencies", "cos_sin", "rotate", "model", "rekey", "positions", "bias", "mask", "scores", "added"];

#[test]
fn right_answers_pass() {
    for operation in OPERATIONS {
        for vector in load(operation) {
            let answer: Vec<_> = vector.output.as_object().unwrap().iter().map(|(key, value)| (key.as_str(), flat(value))).collect();
            assert!(judge(&vector, &answer, DType::Float32).right, "{operation}/{}", vector.id);
        }
    }
}

#[test]
fn a_wrong_pairing_is_named() {
    let vectors = load("rotate");
    let vector = vectors.iter().find(|v| v.id == "halves/whole/prefill").unwrap();
    let file: serde_json::Value = serde_json::from_str(include_str!("../rotate.json")).unwrap();
    let test = file["tests"].as_array().unwrap().iter().find(|t| t["id"] == "halves/whole/prefill").unwrap();
    let wrong = &test["mistakes"]["wrong_pairing"];
    let verdict = judge(vector, &[("q", flat(&wrong["q"])), ("k", flat(&wrong["k"]))], DType::Float32);
    assert_eq!(verdict.shows, ["wrong_pairing"]);
    assert!(verdict.to_string().contains("cure: "));
}
