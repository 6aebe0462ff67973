//! How long a load and a rotation of 8 heads of 4096 tokens of 128 channels take.
use std::time::Instant;

use posenc::{Engine, Geometry, Models, Side, json};

fn main() -> posenc::Result<()> {
    let start = Instant::now();
    let posenc = Engine::load()?;
    println!("load posenc.wasm: {:.1?}", start.elapsed());
    let start = Instant::now();
    let models = Models::load()?;
    let loaded = start.elapsed();
    let words = models.open("llama-3.1-8b")?.explain(0)?.groups[0].heading.clone();
    println!("load posenc-models.wasm: {loaded:.1?}, explain: {:.1?}, {words}", start.elapsed());
    let geometry = Geometry { head_dim: 128, ..Geometry::default() };
    let plan = posenc.plan(&json!({"type": "rope"}), geometry)?;
    let q: Vec<f64> = (0..8 * 4096 * 128).map(|i| f64::from(i % 1000) / 500.0 - 1.0).collect();
    for _ in 0..3 {
        let start = Instant::now();
        let rotated = plan.rotate(&q, 128, 0..4096, Side::Query)?;
        println!("rotate 8 x 4096 x 128: {:.1?} ({})", start.elapsed(), rotated[128]);
    }
    Ok(())
}
