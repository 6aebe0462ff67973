//! An adapter in 30 lines: stands for an engine before `posenc conform`. Replace `rotate` by the engine's own.
use serde_json::{json, Value};
use std::io::{stdin, stdout, Write};

fn rotate(x: &Value, input: &Value) -> Value {
    let number = |key: &str| input[key].as_f64().unwrap();
    let (first, half) = (number("first_dim") as usize, number("rotary_dim") as usize / 2);
    let mut out = x.clone();
    for (t, token) in x.as_array().unwrap().iter().enumerate() {
        for (h, head) in token.as_array().unwrap().iter().enumerate() {
            for (r, f) in input["inv_freq"].as_array().unwrap().iter().enumerate() {
                let (a, b) = if input["pairing"] == "halves" { (r, r + half) } else { (2 * r, 2 * r + 1) };
                let axis = input["axis_of_pair"][r].as_u64().map(|axis| &input["positions"][axis as usize]);
                let at = axis.unwrap_or(&input["positions"])[t].as_f64().unwrap();
                let (sin, cos) = (at * f.as_f64().unwrap()).sin_cos();
                let (x, y) = (head[first + a].as_f64().unwrap(), head[first + b].as_f64().unwrap());
                out[t][h][first + a] = json!((x * cos - y * sin) * number("attention_factor"));
                out[t][h][first + b] = json!((y * cos + x * sin) * number("attention_factor"));
            }
        }
    }
    out
}

fn main() {
    for line in stdin().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let input = &request["input"];
        let mut answer = match request["operation"].as_str().unwrap() {
            "hello" => json!({"name": "adapter.rs", "version": "1", "dtype": "float64"}),
            "rotate" => json!({"output": {"q": rotate(&input["q"], input), "k": rotate(&input["k"], input)}}),
            _ => json!({"unsupported": "this example has rotate alone"}),
        };
        answer["id"] = request["id"].clone();
        println!("{answer}");
        stdout().flush().unwrap();
    }
}
