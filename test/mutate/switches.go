package main

// switches is compiled into a package beside its changed files.
const switches = `package PACKAGE

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("MUTANT"))

type mutateNumber interface {
	~int | ~int32 | ~int64 | ~uint64 | ~float64
}

var mutantsMet, metMutants = os.Getenv("MUTANTS_MET"), sync.Map{}

// mutantIs reports whether a mutant is on, and records that it would make a difference here.
func mutantIs(id int) bool {
	if mutantsMet != "" {
		if _, before := metMutants.LoadOrStore(id, true); !before {
			if file, err := os.OpenFile(mutantsMet, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
				fmt.Fprintln(file, id)
				file.Close()
			}
		}
	}
	return mutantOn == id
}

func mutateAlways(id int, is bool) bool { return is || mutantIs(id) }
func mutateNever(id int, is bool) bool  { return is && !mutantIs(id) }
func mutateNot(id int, is bool) bool    { return is != mutantIs(id) }

func mutateDo(id int) bool               { return !mutantIs(id) }

func mutateZero[T any](id int, value T) T {
	if mutantIs(id) {
		var zero T
		return zero
	}
	return value
}

func mutateMinus[T mutateNumber](id int, a, b T) T {
	if mutantIs(id) {
		return a + b
	}
	return a - b
}

func mutatePlus[T cmp.Ordered](id int, a, b T) T {
	if mutantIs(id) {
		switch x := any(a).(type) {
		case int:
			return any(x - any(b).(int)).(T)
		case int32:
			return any(x - any(b).(int32)).(T)
		case int64:
			return any(x - any(b).(int64)).(T)
		case float64:
			return any(x - any(b).(float64)).(T)
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
	if mutantIs(id) {
		return slices.Max(append(rest, first))
	}
	return slices.Min(append(rest, first))
}

func mutateMax[T cmp.Ordered](id int, first T, rest ...T) T {
	if mutantIs(id) {
		return slices.Min(append(rest, first))
	}
	return slices.Max(append(rest, first))
}

func mutateCompare[T cmp.Ordered](id int, op string, a, b T) bool {
	is := map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
	near := map[string]bool{"<": a <= b, "<=": a < b, ">": a >= b, ">=": a > b}[op]
	switch {
	case near != is && mutantIs(id):
		return near
	case mutantIs(id + 1):
		return !is
	}
	return is
}
`
