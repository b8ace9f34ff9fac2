package simulator

// Wildcard matches * with any number of characters, ? with one; a backslash takes the next literally.
func Wildcard(pattern, value string) bool {
	p, v := []rune(pattern), []rune(value)
	pi, vi, star, mark := 0, 0, -1, 0
	for vi < len(v) {
		switch {
		case pi < len(p) && p[pi] == '*':
			star, mark = pi, vi
			pi++
		case pi < len(p) && p[pi] == '?':
			pi, vi = pi+1, vi+1
		case pi+1 < len(p) && p[pi] == '\\' && p[pi+1] == v[vi]:
			pi, vi = pi+2, vi+1
		case pi < len(p) && p[pi] != '\\' && p[pi] == v[vi]:
			pi, vi = pi+1, vi+1
		case star >= 0:
			mark++
			pi, vi = star+1, mark
		default:
			return false
		}
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}
