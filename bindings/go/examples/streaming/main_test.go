package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"waybill.dev/go"
)

func TestAURLOpensOneStream(t *testing.T) {
	store, err := waybill.OpenStreaming(waybill.StreamingOptions{
		Directory: filepath.Join(t.TempDir(), "store"), Witness: waybill.WitnessNone(), MaxOpen: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		front(store, server.URL).ServeHTTP(w, r)
	}))
	defer server.Close()
	read := func(response *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	prepare := func() (int, string) {
		return read(http.PostForm(server.URL+"/prepare/exec", url.Values{"container": {"c1"}, "command": {"ls"}}))
	}

	status, text := prepare()
	stream := strings.TrimSpace(text)
	if status != http.StatusOK || !strings.HasPrefix(stream, server.URL+"/exec/") {
		t.Fatal(status, text)
	}
	response, err := http.PostForm(server.URL+"/prepare/exec", url.Values{"container": {"c1"}, "command": {"ls"}})
	if err != nil || response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Error(response, err)
	}
	response.Body.Close()
	if status, text := read(http.Get(strings.Replace(stream, "/exec/", "/attach/", 1))); status != http.StatusNotFound {
		t.Error(status, text)
	}
	if status, _ := read(http.Head(stream)); status != http.StatusMethodNotAllowed {
		t.Error(status)
	}
	if status, text := read(http.Get(stream)); status != http.StatusOK || text != "exec in c1: [\"ls\"]\n" {
		t.Error(status, text)
	}
	_, unknown := read(http.Get(server.URL + "/exec/none"))
	if status, text := read(http.Get(stream)); status != http.StatusNotFound || text != unknown {
		t.Error(status, text)
	}
	if status, text := read(http.PostForm(server.URL+"/prepare/exec", url.Values{"container": {"c1"}})); status != http.StatusBadRequest {
		t.Error(status, text)
	}
}
