from sentence_transformers import SentenceTransformer
model = SentenceTransformer("BAAI/bge-m3", model_kwargs={"attn_implementation": "flash_attention_2", "torch_dtype": "bfloat16"})
emb = model.encode(["what is a position id?", "a short text", "another one"])
# position_ids that reach XLMRobertaEmbeddings:
# tensor([[0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 0, 1, 2, 3]])
