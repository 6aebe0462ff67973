package posenc

// Positions say where tokens stand: [Range], [IDs] or [Axes] make them.
type Positions struct {
	first, count int64
	axes         [][]int64 // [axis][token]; nil: a range
}

// Range is first, first + 1, …, count of them.
func Range(first int64, count int) Positions { return Positions{first: first, count: int64(count)} }

// IDs are positions one by one.
func IDs(ids ...int64) Positions { return Axes(ids) }

// Axes are positions one by one along several axes, for pictures and videos: [axis][token].
func Axes(axes ...[]int64) Positions {
	if len(axes) == 0 {
		axes = [][]int64{nil}
	}
	return Positions{count: int64(len(axes[0])), axes: axes}
}

// Len is how many tokens they are of.
func (p Positions) Len() int { return int(p.count) }

// IDs are the positions, [axis][token].
func (p Positions) IDs() [][]int64 {
	if p.axes != nil {
		return p.axes
	}
	ids := make([]int64, p.count)
	for i := range ids {
		ids[i] = p.first + int64(i)
	}
	return [][]int64{ids}
}

// hold makes a handle of c.h for the time of some calls.
func (p Positions) hold(c *calls) (uint32, error) {
	const free = "posenc_positions_free"
	if p.axes == nil {
		return c.hold(free, "posenc_positions_range", p.first, p.count)
	}
	all := make([]int64, 0, len(p.axes)*p.Len())
	for _, axis := range p.axes {
		if len(axis) != p.Len() {
			return 0, misuse("every axis must have as many ids as the first, %d, got %d", p.count, len(axis))
		}
		all = append(all, axis...)
	}
	ids, err := c.longs(all)
	if err != nil {
		return 0, err
	}
	return c.hold(free, "posenc_positions_ids", ids, int64(len(p.axes)), int64(1), p.count)
}

// positionsOf reads what a function of c.h makes.
func positionsOf(c *calls, handle uint32) (Positions, error) {
	at, err := c.longs(make([]int64, 3))
	if err != nil {
		return Positions{}, err
	}
	if err := c.call("posenc_positions_shape", handle, at); err != nil {
		return Positions{}, err
	}
	shape, err := c.readLongs(at, 3)
	if err != nil {
		return Positions{}, err
	}
	axes, count := int(shape[0]), int(shape[2])
	ids, err := c.longs(make([]int64, axes*count))
	if err != nil {
		return Positions{}, err
	}
	if err := c.call("posenc_positions_copy", handle, ids, uint32(axes*count)); err != nil {
		return Positions{}, err
	}
	all, err := c.readLongs(ids, axes*count)
	if err != nil {
		return Positions{}, err
	}
	made := make([][]int64, axes)
	for axis := range made {
		made[axis] = all[axis*count : (axis+1)*count]
	}
	return Axes(made...), nil
}
