output = pipe(prompt=p, height=480, width=832, num_frames=201)
