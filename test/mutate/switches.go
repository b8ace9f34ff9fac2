package main

// switches is compiled into a package beside its changed files.
const switches = `package PACKAGE

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"time"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("MUTANT"))

type mutateNumber interface {
	~int | ~int32 | ~int64 | ~uint64 | ~float64
}

func mutateAlways(id int, is bool) bool { return is || mutantOn == id }
func mutateNever(id int, is bool) bool  { return is && mutantOn != id }
func mutateNot(id int, is bool) bool    { return is != (mutantOn == id) }

func mutateZero[T any](id int, value T) T {
	if mutantOn == id {
		var zero T
		return zero
	}
	return value
}

func mutateMinus[T mutateNumber](id int, a, b T) T {
	if mutantOn == id {
		return a + b
	}
	return a - b
}

func mutatePlus[T cmp.Ordered](id int, a, b T) T {
	if mutantOn == id {
		switch x := any(a).(type) {
		case int:
			return any(x - any(b).(int)).(T)
		case int32:
			return any(x - any(b).(int32)).(T)
		case uint32:
			return any(x - any(b).(uint32)).(T)
		case time.Duration:
			return any(x - any(b).(time.Duration)).(T)
		case string:
			return a
		}
	}
	return a + b
}

func mutateMin[T cmp.Ordered](id int, first T, rest ...T) T {
	if mutantOn == id {
		return slices.Max(append(rest, first))
	}
	return slices.Min(append(rest, first))
}

func mutateMax[T cmp.Ordered](id int, first T, rest ...T) T {
	if mutantOn == id {
		return slices.Min(append(rest, first))
	}
	return slices.Max(append(rest, first))
}

func mutateCompare[T cmp.Ordered](id int, op string, a, b T) bool {
	is := map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
	switch mutantOn {
	case id:
		return map[string]bool{"<": a <= b, "<=": a < b, ">": a >= b, ">=": a > b}[op]
	case id + 1:
		return !is
	}
	return is
}
`
