package posenc_test

import (
	"fmt"
	"log"

	posenc "example.org/posenc/bindings/go"
)

func Example() {
	engine, err := posenc.Load()
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	yarn := posenc.Scheme{"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}
	plan, err := engine.Plan(
		posenc.Scheme{"type": "rope", "rope_theta": 1e6, "scaling": yarn},
		posenc.Geometry{HeadDim: 128})
	if err != nil {
		log.Fatal(err)
	}
	q, _ := engine.Normals(1, 8*16*128) // [heads][tokens][head_dim], random
	rotated, err := plan.Rotate(q, 128, posenc.Range(0, 16), posenc.Query)
	if err != nil {
		log.Fatal(err)
	}
	rotate := plan.Info().Rotate
	fmt.Println(len(rotated), rotate.Frequencies[0][:3], rotate.Amplitude)

	_, err = engine.Plan(posenc.Scheme{"type": "rope"}, posenc.Geometry{HeadDim: 63})
	fmt.Println(err)
	// Output:
	// 16384 [1 0.8058421877614819 0.6493816315762113] 1.138629436111989
	// rope: head_dim must be even, got 63; set rotary_dim or pad the head
}

func ExampleModels() {
	models, err := posenc.LoadModels()
	if err != nil {
		log.Fatal(err)
	}
	defer models.Close()
	config := []byte(`{"model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14,
		"num_key_value_heads": 2, "num_hidden_layers": 24, "max_position_embeddings": 32768,
		"rope_theta": 1e6}`)
	model, err := models.Read(config, "config.json") // or params.json, or the front of a GGUF
	if err != nil {
		log.Fatal(err)
	}
	said, _ := model.Explain(0)
	fmt.Println(said.Groups[0].Heading)

	judged, err := models.Doctor([]posenc.Evidence{
		posenc.File("config.json", config),
		posenc.Words("vllm serve Q --max-model-len 131072"), // models, logs, lines
	}, posenc.DoctorOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(judged.Verdict)
	fmt.Println(judged.Findings[0].Code)

	longer, _ := model.Extend(131072, posenc.ExtendOptions{Engine: "vllm"})
	fmt.Println(longer.Recommended)
	// Output:
	// layers 0–23: RoPE, halves
	// Look at this: more tokens than the model is made for: vLLM ends with an error.
	// beyond_context
	// yarn
}
