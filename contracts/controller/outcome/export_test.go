package outcome

// Len is of how many objects conflicts are remembered.
func (r *Retries) Len() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.of)
}
