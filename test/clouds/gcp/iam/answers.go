package iam

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

func decode(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}

func oauthError(w http.ResponseWriter, code, description string) {
	answer(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": description})
}

func apiError(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "status": code, "message": message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
