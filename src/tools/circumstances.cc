#include "src/tools/circumstances.h"

namespace posenc::detail {
namespace {

constexpr DefaultContext of_programs[] = {
    {"ollama",
     {2048, 4096},
     "Ollama runs 4,096 tokens (older versions 2,048) unless it is told more, and drops the oldest "
     "ones without a word, whatever the model was made for; machines with much memory have larger "
     "defaults",
     "ollama ps shows what runs; OLLAMA_CONTEXT_LENGTH for the server, num_ctx in the request's "
     "options or in a Modelfile"},
    {"lmstudio lm-studio lms",
     {4096, 2048},
     "LM Studio loads a model with 4,096 tokens unless its settings say more; what is longer loses "
     "its middle or its beginning",
     "Context Length in the model's settings, or lms load --context-length"},
    {"llama-cpp-python",
     {512, 512},
     "llama-cpp-python runs n_ctx 512 unless it is told more, whatever the model was made for",
     "Llama(…, n_ctx=8192), LlamaCpp(…, n_ctx=8192): where the model is loaded, not where it is "
     "called"},
    {"jan",
     {4096, 8192},
     "Jan runs a context that its settings of the model say (ctx_len, 4,096 or 8,192), whatever "
     "the model was made for; what is longer ends the answer, or is cut off",
     "Context Size in the model's settings"},
    {"text-generation-webui textgen",
     {8192, 2048},
     "text-generation-webui loads a model with ctx-size 8,192 (older versions 2,048) where nobody "
     "says it, and cuts prompts at its truncation length, whatever the model was made for",
     "--ctx-size LENGTH (max_seq_len of ExLlama), and Truncate the prompt up to this length as "
     "high"},
    {"executorch react-native-executorch optimum-executorch",
     {128, 128},
     "ExecuTorch runs a context of 128 tokens where the exported file has no max_context_len, "
     "whatever the model was made for, and ends beyond it",
     "export the model again with its length (--max_context_length, --max_seq_len of optimum-cli "
     "export executorch)"},
    {"omlx",
     {512, 512},
     "oMLX's embeddings are made of the first 512 tokens of a text, a number in its code, which no "
     "setting and no file of the model reaches",
     "update oMLX; until then pieces of at most 512 tokens, or another server",
     true},
    {"web-llm webllm",
     {4096, 4096},
     "WebLLM's prebuilt models run context_window_size 4,096 unless their record says more, "
     "whatever the model was made for",
     "context_window_size in the model's record (overrides) or in the chat options of "
     "CreateMLCEngine (with sliding_window_size -1), as far as the browser's memory goes; a "
     "library of one's own: mlc_llm compile --overrides context_window_size=LENGTH"},
    {"gpt4all",
     {2048, 2048},
     "GPT4All runs 2,048 tokens unless the model's settings say more; what is longer loses its "
     "beginning",
     "Context Length in the model's settings (n_ctx in Python)"},
};

constexpr Circumstance by_when[] = {
    {When::in_buffers, "seen_in_buffers",
     "the frequencies are a buffer that no file holds: what makes a model on the meta device and "
     "gives it memory afterwards (to_empty, from_pretrained) must compute them anew; else they are "
     "what stood there, zeros, NaN or huge numbers, and a cosine may lie beyond 1",
     "compute inv_freq again after loading (the class's own __init__ or _init_weights has how), or "
     "a version that does; print model.model.rotary_emb.inv_freq and give that to posenc doctor"},
    {When::of_cache_state, "positions_shifted", state_of_gemma3n, cure_of_gemma3n},
    {When::after_eviction, "seen_after_eviction",
     "a cache that drops keys must go on counting all tokens, since those that are left carry the "
     "rotation of their old places: where the number of rows that are left is taken for the next "
     "position, later tokens rotate at positions behind, and distances shrink by what was dropped",
     "a count of all tokens beside that of the rows (mlx-lm: the cache's offset, transformers: "
     "position_ids), or keys that are rotated anew for their slot (kvpress: KeyRerotationPress, "
     "StreamingLLM)"},
    {When::of_merge, "two_models",
     "what must agree for a merge is how the two rotate (rope_theta, scaling, pairing), as "
     "averaged rows of q and k fit one rotation: max_position_embeddings is a promise, and does "
     "not matter",
     "posenc doctor MODEL MODEL 'can the two be merged?' compares them"},
    {When::of_client, "num_ctx_ignored",
     "num_ctx of a request's options stands above that of the Modelfile: a client sends one of its "
     "own, mostly the length which the model's file promises",
     "the length in the client's own settings (Roo Code and Cline: the context window of the "
     "Ollama provider, Continue: contextLength, Open WebUI: num_ctx among the model's parameters), "
     "or a newer client; ollama ps shows what runs"},
    {When::of_claude_code, "seen_by_front_end",
     "Claude Code takes a window of 200,000 tokens for each model that it does not know, whatever "
     "the server was started for: a conversation is not shortened before a smaller server refuses "
     "it",
     "CLAUDE_CODE_MAX_CONTEXT_TOKENS=LENGTH in Claude Code's environment, the length that the "
     "server runs (of names that begin with claude- it is not read), or start the server for more"},
    {When::of_corners, "seen_on_sides",
     "llama.cpp before pull request 25781 stretches Qwen3-VL's learned table of rows and columns "
     "to other corners than the model was trained with (no align_corners): places are off by more, "
     "the larger and the less square a picture is. Boxes are in thousandths of each side, and not "
     "in pixels",
     "update llama.cpp, or what has it within; multiply x by width / 1000 and y by height / 1000 "
     "of the picture that was sent"},
    {When::of_riflex, "asks_longer",
     "RIFLEx makes no frames: it slows one pair of channels, so that a video of more frames than "
     "the model was trained on (129 of HunyuanVideo, 81 of Wan) does not come round to its "
     "beginning",
     "ask for more frames where the latent is made (length, num_frames), and set k, the pair (4 of "
     "HunyuanVideo, 6 of Wan); posenc extend TRANSFORMER --to FRAMESxHEIGHTxWIDTH says what it "
     "does"},
    {When::of_cutoff, "seen_unscaled",
     "LLaMA-Factory scales only where cutoff_len is above the model's max_position_embeddings, and "
     "else trains the file as it is ('Disabling rope scaling' in its log)",
     "cutoff_len above max_position_embeddings, which makes the factor; or rope_scaling written "
     "into the config.json, and no flag"},
    {When::of_latents, "grid_rounded",
     "patches of CogVideoX 1.5 take patch_size_t 2 latent frames at a time, and frames make "
     "(frames - 1) / 4 + 1 of these: 49 make 13, an odd number",
     "45, 53 or 85 frames (12, 14 and 22 latents; 81 make 21, which the pipeline fills up by one), "
     "and patch_size_t handed to what makes the rotation (get_3d_rotary_pos_embed with "
     "grid_type='slice')"},
    {When::of_permuted, "seen_by_pairs",
     "torchtitan rotates neighbours, as Meta's own weights want it: files of Hugging Face's have "
     "the rows of q and k permuted for halves, and give nonsense where they are read as they are",
     "Meta's own weights (the folder original/ of the same repository), or rows of q and k that "
     "are permuted back (torchtitan does it itself with checkpoint.initial_load_in_hf)"},
    {When::of_exllama, "seen_in_one_version",
     "exllamav2 reads YaRN of config.json from 0.2.3 on, and before it rotates as without a "
     "scaling",
     "pip install -U exllamav2, and the block that the model's card publishes (Qwen 2.5: YaRN by 4 "
     "of 32,768) in rope_scaling of its config.json"},
    {When::of_reserved, "seen_by_front_end",
     "tabbyAPI reserves its context when it loads a model: max_seq_len, and cache_size, which no "
     "job can exceed, are of its config.yml or of a load request, and no chat request sets them",
     "max_seq_len and cache_size as large as memory allows, in config.yml or in /v1/model/load; "
     "the client is told the same number"},
    {When::of_goose, "seen_by_front_end",
     "goose's system prompt and tools take most of the 4,096 tokens that Ollama runs unless told, "
     "and it drops the beginning of the talk without a word",
     "OLLAMA_CONTEXT_LENGTH=32768 where Ollama is started, or GOOSE_INPUT_LIMIT=32768, which goose "
     "hands on as num_ctx; ollama ps shows what runs"},
    {When::of_ps, "num_ctx_ignored",
     "ollama ps shows what runs, and that is what the request that loaded the model asked for: a "
     "client's own num_ctx, or the server's default (4,096, older 2,048) where neither the request "
     "nor the name it calls has one",
     "ollama create NAME -f Modelfile, and call that NAME; OLLAMA_CONTEXT_LENGTH in the "
     "environment "
     "of the server itself (systemctl edit ollama, the app's settings); then ollama stop NAME, so "
     "that it is loaded anew; requests to /v1 carry no num_ctx"},
    {When::of_nemo, "claimed_context",
     "the 1,024,000 of Mistral Nemo's config.json is nominal: its authors trained it for 128k "
     "tokens, and memory for a million is reserved for nothing",
     "131,072 at most: --max-model-len, -c, num_ctx; less where memory is short"},
    {When::of_v1, "num_ctx_ignored",
     "Ollama's OpenAI-compatible /v1, by which many clients go, takes no num_ctx: what a client "
     "sets "
     "does not reach it, and the server's default or the Modelfile's stands",
     "PARAMETER num_ctx in a Modelfile (ollama create NAME -f Modelfile), or "
     "OLLAMA_CONTEXT_LENGTH for the server; ollama ps shows what runs"},
    {When::of_state, "context_full",
     "most layers of this model keep a state in place of keys (gated delta net, Mamba), which no "
     "context shift can cut: at the end of the context generation stops, or answers are empty, and "
     "num_keep changes nothing",
     "a larger num_ctx (-c), as far as memory goes; and a client that leaves out older messages, "
     "or "
     "a new chat, before the context is full"},
    {When::of_short_draft, "draft_length",
     "the draft reaches fewer tokens than its target (TinyLlama 2,048, Llama 2 4,096), and vLLM "
     "0.4.3 falls over the step for which it has no guess",
     "a newer vLLM, which goes on without guesses; speculative_max_model_len as long as the draft "
     "reaches, prompt and answer within it, or a draft that reaches as far"},
    {When::of_vram, "context_defaulted",
     "since 0.15.5 Ollama's default follows the memory of the GPUs: 4,096 tokens below 24 GiB, "
     "32,768 below 48, and 262,144 from there on, for every model; keys and values for all of them "
     "are reserved, and layers go to the CPU",
     "OLLAMA_CONTEXT_LENGTH=32768 (what you need) where the server starts, or PARAMETER num_ctx in "
     "a "
     "Modelfile; ollama ps shows context and processor"},
    {When::of_wan_sizes, "grid_rounded",
     "Wan 2.2's TI2V-5B has a VAE of 16 and patches of 2: height and width must be multiples of "
     "32, "
     "and 720 and 624 are none (Wan 2.1 and the 14B: of 16)",
     "704 or 736 for 720, 608 or 640 for 624"},
    {When::of_bf16_buffer, "frequencies_rounded",
     "a buffer of inv_freq that was made or cast in bfloat16 has 8 bits for good: .float() "
     "afterwards brings none back, and the error of an angle grows with the position",
     "inv_freq made anew in float32 (base and head_dim are enough) whatever the model's dtype, and "
     "the product with positions too; posenc doctor MODEL with the printed numbers says from where "
     "it shows"},
    {When::of_layer_count, "positions_stale",
     "the count of tokens is raised at the first layer that writes, so that the layers above it "
     "see "
     "one more than they hold, and rotate the new token one position too far",
     "a count for each layer (get_seq_length(layer_idx)), or positions that are made once, before "
     "the first layer; update the library"},
    {When::of_mistral_mscale, "amplitude",
     "the first config.json of Mistral Medium 3.5 had mscale_all_dim 1.0 beside mscale 1.0, which "
     "cancels YaRN's amplitude (1.416 of a factor 64), and files that were converted from it give "
     "nonsense at any length",
     "the file with mscale_all_dim 0, or the model pulled again (Ollama has published it anew); no "
     "num_ctx makes up for it"},
    {When::of_rotating_cache, "positions_stale",
     "a window's cache is a ring, which cannot be cut back once the text is longer than the window "
     "(is_trimmable() is false): a kept prompt that is cut all the same holds keys of other "
     "places, "
     "or of another talk",
     "prefix caching off for models with windows, or a version that asks is_trimmable()"},
    {When::of_regression_vl, "version_fault",
     "transformers 4.54 and 4.55 make M-RoPE's positions of Qwen2.5-VL anew in generate, and "
     "wrongly "
     "(mended by transformers#40490, of which reports remain for 4.56)",
     "transformers 4.53.3, or the newest release; compare one picture's answer in both"},
    {When::of_missing_llama3, "seen_unscaled",
     "Llama 3.1 and 3.2 were trained with scaled frequencies at every length: code without them "
     "rotates 35 of 64 pairs otherwise, in short texts too (Llama 3 of 8k has no scaling)",
     "rope_type llama3: factor 8 (32 of 3.2), low_freq_factor 1, high_freq_factor 4, original "
     "8192; "
     "posenc explain llama-3.1-8b --pairs prints the frequencies, posenc emit writes code"},
    {When::of_cache_lens, "answer_cut",
     "KTransformers' cache of --cache_lens tokens holds prompt and answer together: a longer "
     "max_new_tokens is never reached, and a long thought is cut off before it",
     "--cache_lens as long as the longest talk with its answer, and max_new_tokens below it"},
    {When::of_lms_offer, "context_defaulted",
     "the number is what LM Studio offers, and not what the model reaches: versions that do not "
     "read the length from a model's file, as of some MLX models, offer 2,048 or 4,096",
     "update LM Studio; then Context Length where the model is loaded, or its default in the "
     "application's settings; posenc explain MODEL says how far the model reaches"},
    {When::of_one_batch, "batch_size",
     "llama.cpp embeds a text within one physical batch, of 512 tokens unless told, whatever the "
     "context is",
     "-ub and -b as long as the longest piece (LocalAI: batch and context_size in the model's "
     "YAML; "
     "llama-cpp-python: n_ubatch and n_batch), as far as the model reaches: BERT's kind ends at "
     "512 "
     "rows; or shorter pieces"},
    {When::of_mrope_on_npu, "seen_by_pairs",
     "GLM-OCR rotates neighbours, and vllm-ascend's path by torch_npu.npu_mrope rotates halves, "
     "whatever is_neox_style says: nonsense from the second token on",
     "a vllm-ascend that takes the native path where is_neox_style is false, or another engine"},
    {When::of_demo_indexer, "seen_by_pairs",
     "DeepSeek's own inference code rotated the indexer's queries and keys by neighbours until 17 "
     "November 2025, and their weights want halves: it chooses the wrong keys, which long texts "
     "show",
     "the newest inference/ of the model's repository; engines that rotate the indexer by halves "
     "(vLLM, SGLang) are not concerned"},
    {When::of_whole_japanese, "version_fault",
     "transformers 5.0 to 5.17 makes the frequencies of GPT-NeoX Japanese for whole heads, "
     "whatever "
     "rotary_pct says, and stops where shapes do not fit",
     "a newer transformers (5.24 reads it; transformers#48652), or 4.57"},
    {When::of_mlx_release, "version_fault",
     "mlx-vlm 0.6.4 hands decoding no rope_deltas of Qwen 3.5 and 3.6, so that what is written "
     "rotates at other places than the prompt (0.6.5 hands them on)",
     "pip install -U mlx-vlm (0.6.5 or later), or 0.6.3; text alone also runs in mlx_lm.generate"},
    {When::of_rolled_inputs, "seen_by_shift",
     "no fault: a head that guesses further tokens gets inputs that are all moved by one place, "
     "and with RoPE a logit depends on the distance between two tokens, which a move of all by as "
     "much leaves as it is; engines that run such heads do not move their rotation either",
     "nothing; a learned or sinusoidal table that is added would have to move along"},
    {When::of_saved_deltas, "seen_on_axes",
     "behind a picture a token's position is the count of cached tokens plus the rope delta, and a "
     "file that holds keys and values alone loses the delta: what is written after it is read back "
     "rotates at other places than in the session that went on",
     "save the delta (rope_deltas, the session's state) beside the cache and set it when it is "
     "read, or read the prompt with its pictures again"},
    {When::of_full_prompt, "context_full",
     "a context shift makes room only while an answer is written: a prompt that is as long as its "
     "slot is refused (status 400, 'exceeds the available context size'), whatever the switch says",
     "a client that leaves out the oldest messages before it sends them, or a longer context; "
     "where slots share one (parallel > 1 without a unified cache) each has its part alone"},
    {When::of_part_of_head, "rotary_dim",
     "where a part of a head rotates, that part is taken for a head of its own: pair i of "
     "rotary_dim / 2 rotates by theta^(-2i / rotary_dim), and joins channels i and i + rotary_dim "
     "/ 2 (halves) or 2i and 2i + 1; head_dim in either place is other speeds or other pairs, "
     "which short prompts hardly show",
     "rotary_dim (head_dim times partial_rotary_factor) in both places; posenc explain MODEL "
     "prints the frequencies to compare with"},
    {When::of_silent_cut, "seen_cut",
     "what makes the vectors cuts a longer text at the model's maximum (max_seq_length, special "
     "tokens counted) and says nothing: the vector is that of the beginning, and the rest is lost",
     "pieces within the maximum, each with a vector of its own; count with the model's tokenizer "
     "before"},
    {When::of_proteins, "seen_cut",
     "ESM C was trained on sequences of up to 2,048 residues; it rotates, so that no table ends "
     "there, but what is longer meets angles that training did not show, and vectors get worse",
     "pieces of at most 2,048 residues, or a check of what longer ones give"},
    {When::of_agent_length, "seen_by_front_end",
     "an agent counts by a number of its own, or by what the server has loaded, and its system "
     "prompt and tools alone take several thousand tokens: LM Studio and Ollama load 4,096 unless "
     "told, whatever the model reaches",
     "load the model for 32,768 or more (LM Studio: Context Length; Ollama: "
     "OLLAMA_CONTEXT_LENGTH), and tell the agent the same number"},
    {When::of_four_rows, "mrope_parts",
     "newer models of pictures take ids of four rows, text first and then time, row and column: "
     "what makes three rows lacks the first, and what transposes them takes texts for rows",
     "torch.cat([text_position_ids[None], mrope_position_ids], dim=0), [4, batch, tokens], where "
     "the ids are made; posenc check-positions looks at the rows"},
    {When::of_cut_pictures, "picture_cut",
     "the tokenizer was saved with max_length or truncation, which a processor takes over into "
     "each call: the places of pictures are cut, and do not match the pictures any more",
     "drop max_length and truncation from tokenizer_config.json (and tokenizer.json), or vLLM: "
     "--mm-processor-kwargs '{\"truncation\": false}'; or smaller pictures (max_pixels)"},
    {When::of_kobold_release, "version_fault",
     "koboldcpp 1.94 and 1.94.1 end with an error where the context is full and a window's cache "
     "(SWA) is used together with FastForwarding",
     "koboldcpp 1.94.2 or later; until then SWA or FastForwarding off"},
    {When::of_shard_bounds, "sharding_ignored",
     "each rank has a part of the text, and its position_ids begin where the part does: bounds of "
     "packed texts (cu_seqlens) that are made of them count the whole, where those of a rank begin "
     "at 0 and end at its own length",
     "cu_seqlens less what stands before the rank's part, with 0 in front, or bounds that are made "
     "before the text is shared out; update the trainer"},
    {When::of_more_frames, "asks_longer",
     "Wan was trained on 81 frames: beyond, its fastest pairs come round, and a video repeats or "
     "turns back",
     "context windows (WanVideo Context Options: 81 frames with an overlap), a later part that "
     "goes "
     "on from the last frames, or RIFLEx (posenc extend TRANSFORMER --to FRAMESxHEIGHTxWIDTH)"},
    {When::of_captions, "seen_cut",
     "Qwen-Image takes prompts of up to 1,024 tokens: trainers and pipelines cut there, diffusers "
     "at max_sequence_length, 512 unless told",
     "captions of at most 1,024 tokens of its tokenizer, and max_sequence_length=1024 where the "
     "pipeline is called"},
    {When::of_ascend_kernel, "rotary_dim",
     "the kernel rotates whole heads, and this model a part of each (rotary_dim below head_size), "
     "or neighbours: the plugin hands head_size on where rotary_dim is meant",
     "a newer vllm-ascend (with its pull request 6310), or its torch path for the rotation"},
    {When::of_qwen3_promise, "lengths_differ",
     "Qwen 3's files promise 40,960 tokens: 32,768 that were trained, and 8,192 for the answer; "
     "its authors publish YaRN by 4 of 32,768 for models of 4B and more, and none for 0.6B and "
     "1.7B",
     "up to 40,960 nothing is to be set; beyond, of 4B and more, posenc extend MODEL --to 131072"},
    {When::of_lists_speed, "seen_across_lists",
     "ONNX Runtime GenAI makes all cached keys anew where a text crosses 4,096 tokens, since "
     "LongRoPE has another list there: that token is slow, and those after it as slow as a long "
     "text's",
     "prompt and answer on one side of 4,096 tokens, or a newer ONNX Runtime GenAI"},
    {When::of_merge_size, "grid_size",
     "the processor sizes pictures for merge_size of preprocessor_config.json (2: sides of a "
     "multiple of 28 pixels), and a model that merges 4 × 4 patches wants rows and columns that 4 "
     "divides; the merger's weights are for 2 × 2 besides",
     "merge_size in preprocessor_config.json as spatial_merge_size, and a merger that is trained "
     "anew; for fewer tokens alone a smaller max_pixels"},
    {When::of_doubled, "added",
     "what makes the rows of a learned table must return the table where nothing is interpolated: "
     "where it returns the tokens, these are added to themselves, doubled and without a position",
     "return pos_embed there, of the same shape as the tokens"},
    {When::padded_apart, "seen_in_batch",
     "ids that are padded on another side than their tokens belong to other tokens: all positions "
     "of shorter texts are wrong",
     "pad position_ids on the side of input_ids, M-RoPE's three rows alike; posenc "
     "check-positions IDS --mask MASK looks at them"},
    {When::in_cloud, "seen_in_cloud",
     "models of Ollama's cloud run there, with the model's whole context, and not with the default "
     "of this machine: a smaller number is the client's own table",
     "the length in the client's settings; ollama show NAME:cloud says the model's"},
    {When::no_positions, "seen_without_positions",
     "RWKV and Mamba keep a state and have no positions: nothing rotates and nothing can be "
     "scaled; what the state keeps of texts longer than those of training, training decides",
     "texts as long as the card of the model names, or a model that was trained for longer ones"},
    {When::axes_as_packed, "seen_axes_as_packed",
     "position_ids of three rows (M-RoPE) that go where one row is looked for are taken for texts "
     "packed into one row: lengths are made of them, and flash attention reads other memory",
     "a transformers that tells the two apart (with huggingface/transformers#44911), or "
     "attn_implementation='sdpa' until then"},
    {When::one_row, "seen_on_axes",
     "tokens of pictures have three rows of positions (M-RoPE: time, height, width): by one row "
     "text stays right, and where the row is handed over the model does not make its own",
     "position_ids [3, batch, tokens] of get_rope_index (in transformers 5 a fourth row in front "
     "for texts that are packed), or none, so that the model makes them"},
    {When::packed, "seen_packed",
     "texts that are packed into one row see each other unless the attention is told where "
     "each begins: ids that begin anew do not tell it by themselves (flash attention's "
     "varlen does by cu_seqlens, others need a block mask)",
     "see that flash attention is really on (model.config._attn_implementation; in TRL by "
     "model_init_kwargs), one row a batch where cu_seqlens are made of the ids; posenc "
     "check-positions IDS --cu_seqlens BOUNDS names a slip of the ids"},
    {When::moved_keys, "seen_moved_keys",
     "transformers 5 keeps rope_theta and rope_scaling in rope_parameters: code that reads "
     "the old keys fails, or takes 10000 and no scaling without a word",
     "write rope_theta (and rope_scaling) at the top of the config.json too, save it by "
     "transformers 4.57, or update what reads it"},
    {When::pairs, "seen_by_pairs",
     "a wrong pairing writes some tokens that make sense, and then repeats itself. Channels are "
     "paired as neighbours (interleaved, GPT-J) or as halves (NEOX): a converter permutes rows of "
     "q and k where the two files differ in that, and there alone. Llama's GGUF has neighbours, "
     "its q and k being permuted, most other architectures (Qwen 2, Phi, Gemma, Falcon) halves",
     "the program's own code for this architecture (candle: quantized_qwen2, and rope for halves, "
     "rope_i for neighbours); posenc explain FILE says which, posenc identify what ran"},
    {When::of_mscale, "seen_by_mscale",
     "of DeepSeek's YaRN mscale goes with cos and sin (over mscale_all_dim), and mscale_all_dim "
     "alone, squared, with the softmax's scale: where both are equal, as in DeepSeek's own files, "
     "cos and sin stay as they are, and exchanging the two changes nothing",
     "0.1 · mscale_all_dim · ln(factor) + 1, squared, times the softmax's scale; posenc explain "
     "FILE says both numbers"},
    {When::among_ranks, "seen_among_ranks",
     "a text that is shared out among ranks needs positions that are made of the whole of "
     "it and then cut like it; made of a part, they begin anew, and pictures that are cut "
     "in two have none",
     "update the trainer; until then no sequence parallel where texts are packed or have pictures; "
     "posenc lint FILE --cp LAYOUT says what a layout must keep"},
    {When::window_cache, "seen_by_window_cache",
     "of layers with a window no more keys are kept than it needs, in a ring: what is "
     "edited or made anew before that is gone, and must be evaluated again; and a step of "
     "several tokens (a draft, a chunk) must drop as many",
     "--swa-full (which takes the memory of all tokens), or more --ctx-checkpoints"},
    {When::chunked, "seen_by_chunks",
     "a prompt is read in chunks: the later ones must go on with the positions of the "
     "first, under M-RoPE with its offsets, too",
     "a chunk as long as the prompt (prefill_step_size, --max-num-batched-tokens), or a "
     "newer version"},
    {When::side_by_side, "seen_side_by_side",
     "requests that run at once share the context that was reserved: each has a part of it "
     "(llama-server's slots, LM Studio's concurrent predictions), or it is full for all when they "
     "fill it together, and what fits alone is refused, cut off or ended",
     "a context of all of them together, or one at a time (LM Studio: Max Concurrent Predictions "
     "1, llama-server -np 1, OLLAMA_NUM_PARALLEL=1)"},
    {When::of_front_end, "seen_by_front_end",
     "a server reserves its context when it loads the model: what a front end sends with a "
     "request is Ollama's num_ctx, which servers of OpenAI's kind pass over",
     "the length where the model is loaded (llama-server -c, vllm --max-model-len, tabbyAPI's "
     "max_seq_len, koboldcpp --contextsize); for Ollama num_ctx in the front end's settings of "
     "the model, or OLLAMA_CONTEXT_LENGTH"},
    {When::of_draft, "seen_with_draft",
     "a draft guesses well only where it stands at its target's positions: its own base, scaling, "
     "length and window count. Beyond them hardly a guess is taken, or the engine stops where a "
     "table of the draft ends; engines have run the window of a draft as full attention, and hand "
     "a draft none of the overrides of its target",
     "posenc doctor TARGET DRAFT 'THE LINE' compares the two; fewer guesses a step "
     "(num_speculative_tokens), and a newer engine"},
    {When::in_batch, "seen_in_batch",
     "padding moves the positions, where ids are counted over it, or tokens see it, where the "
     "mask is missing: a text is right alone and wrong in a batch. Where padding is masked, a "
     "shift of all positions by itself changes nothing under RoPE or ALiBi, and shifts the rows "
     "of a learned table",
     "padding_side='left' for generation, pass attention_mask, and position_ids of the mask "
     "(cumsum - 1); posenc check-positions IDS --mask MASK names the mistake"},
    {When::shifted, "seen_after_shift",
     "when the context is full the engine drops the oldest tokens and moves cached keys; "
     "layers with a base of their own, latent keys and quantized ones have been moved "
     "wrongly by several engines",
     "a context of prompt and answer together, so that nothing is moved (llama.cpp: -c, and "
     "--no-context-shift)"},
    {When::in_turns, "seen_in_turns",
     "the context is full, or cached keys stand at other positions than the new text takes for "
     "granted: the first message is right, and later ones go wrong",
     "switch the reuse of cached prompts off once and compare; posenc check-positions IDS "
     "--first N looks at the ids, posenc identify at the cached keys"},
    {When::of_sides, "seen_on_sides",
     "a learned table of positions is stretched as if it were a square (the root of its "
     "rows) in DINOv2's and many other encoders: of a grid with two sides that fails, or "
     "places rows where they do not belong",
     "hand the encoder its grid (timm: dynamic_img_size=True), cut or fill pictures to "
     "squares, or stretch the table by yourself (posenc.resample)"},
    {When::constant, "seen_at_one_place",
     "always at the same place: a table, a window or a cache that turns round ends there "
     "(4,096 steps are usual), whatever the text",
     "count the tokens or frames up to it, and compare them with the lengths of the model's "
     "config.json (posenc explain FILE) and of the program's cache; update the program"},
    {When::of_trl, "seen_by_trl",
     "TRL cuts texts at max_length of SFTConfig, 1,024 where nobody sets it: max_seq_length "
     "was its name before, and reaches nothing where it is handed to SFTTrainer or to "
     "TrainingArguments",
     "args=SFTConfig(max_length=LENGTH, …)"},
    {When::compiled, "seen_compiled",
     "a model that is compiled for an NPU has fixed lengths: prompt and answer together fit "
     "into those, however far the model itself reaches",
     "a shorter answer (prompt + longest answer within what it was compiled for), lengths of a few "
     "thousand when it is compiled anew (ipex-llm: --max-context-len, --max-prompt-len; OpenVINO: "
     "MAX_PROMPT_LEN, MIN_RESPONSE_LEN), or the build for CPU or GPU"},
    {When::converted, "seen_after_conversion",
     "a conversion loses what the target's converter does not know: base, scaling, factor "
     "of the logits, window",
     "posenc diff config.json CONVERTED says what was lost"},
    {When::of_answers, "seen_by_answers",
     "tokens kept for the answer (max_new_tokens) are taken off the context: where they are "
     "nearly all of it, nothing is left of the prompt, and its beginning is cut off",
     "an answer of some hundred tokens, or a context of prompt and answer together"},
    {When::of_offset, "seen_at_offset",
     "RoBERTa and XLM-R count positions from padding_idx + 1 = 2: a table of 514 rows is for 512 "
     "tokens, and one of 512 rows (RobertaConfig's default) ends after 510: the index is out of "
     "range",
     "max_position_embeddings 514 for a model that is made anew (--config_overrides "
     "max_position_embeddings=514), or texts of two tokens less than the table has rows"},
    {When::cache_quantized, "seen_quantized",
     "cached keys of few bits (fp8, q8_0, q4_0) err a little for each token that is read, and more "
     "in longer texts: the first thing to leave out where a model is right at first and worse "
     "later, within what it reaches",
     "the same line without it (vLLM: --kv-cache-dtype auto, llama.cpp: f16 for both, Ollama: "
     "OLLAMA_KV_CACHE_TYPE=f16), and compare"},
    {When::quantized, "seen_quantized",
     "the same model with 16 bits is right, so that its positions are: few bits, or a quantizer "
     "that was told nothing of long texts, spoil it (cached keys of 4 bits do so first in long "
     "ones)",
     "more bits, or somebody else's file; for cached keys f16 or q8_0"},
    {When::read_again, "prompt_again",
     "the prompt is read anew, which costs time and changes no text: what stands in the cache ends "
     "before it is needed again, or cannot go back (a window's ring, a recurrent state), or the "
     "context was full and began anew",
     "llama.cpp: more --ctx-checkpoints, --swa-full, a -c that holds the whole conversation; and "
     "prompts whose beginning stays the same, to the letter"},
    {When::of_prompt_limit, "seen_by_trl",
     "the limit is a trainer's own, and none of the model: max_prompt_length of TRL's GRPOConfig "
     "is 512 where nobody sets it, and notebooks set 256",
     "max_prompt_length and max_completion_length, together within max_seq_length of what loads "
     "the model"},
    {When::times_slots, "seen_by_slots",
     "a server of several slots reserves their sum: Ollama runs num_ctx × OLLAMA_NUM_PARALLEL, and "
     "llama-server shares -c among its slots; a text has one slot's tokens",
     "OLLAMA_NUM_PARALLEL=1, or llama-server -np 1"},
    {When::cut_apart, "seen_at_cut",
     "sentence-transformers cuts a text at max_seq_length of sentence_bert_config.json (256 for "
     "all-MiniLM-L6-v2, whose table has 512 rows), other programs at the model's own length: of a "
     "longer text they embed two different ones",
     "one limit for both (model.max_seq_length in Python), or texts in pieces that fit"},
    {When::regressed, "seen_in_one_version",
     "another version was right with the same file, so that the fault is the engine's and "
     "not the file's",
     "the version that was right, until a newer one is; posenc doctor FILE --engine "
     "ENGINE@VERSION says what is known of one"},
    {When::at_once, "seen_at_once",
     "from the first words on: no length and no scaling does that; the pairing of channels "
     "(neighbours or halves), rows of the weights that were not permuted for it, another "
     "base, or no fault of position",
     "posenc identify on q and k before and after the rotation names pairing and base; try "
     "a file that somebody else converted"},
};

}  // namespace

std::span<const DefaultContext> default_contexts() { return of_programs; }

std::span<const Circumstance> circumstances() { return by_when; }

}  // namespace posenc::detail
