package simulator

import (
	"bytes"
	"net/http"
)

// halfway keeps the body of an answer, to send it in two parts.
type halfway struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader keeps the status.
func (h *halfway) WriteHeader(status int) { h.status = status }

// Write keeps a part of the body.
func (h *halfway) Write(p []byte) (int, error) { return h.body.Write(p) }

func (h *halfway) sendHalf() {
	if h.status != 0 {
		h.ResponseWriter.WriteHeader(h.status)
	}
	_, _ = h.ResponseWriter.Write(h.body.Next(h.body.Len() / 2))
	_ = http.NewResponseController(h.ResponseWriter).Flush()
}

func (h *halfway) sendRest() { _, _ = h.ResponseWriter.Write(h.body.Bytes()) }
