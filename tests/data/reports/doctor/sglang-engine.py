llm = sgl.Engine(
    model_path=args.model,
    tp_size=args.tp_size,
    dp_size=args.dp_size,
    mem_fraction_static=args.mem_fraction_static,
    trust_remote_code=args.trust_remote_code,
    allow_auto_truncate=True,
)
