package waybill_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

// Files that the kubelet accepts come out as the kubelet writes them back.
func TestKubeletRecords(t *testing.T) {
	type line struct {
		Kind, Case, File, FileBase64 string
		Accepted                     bool
		Rewritten                    any
	}
	accepted := 0
	fixture(t, "records.jsonl", func(l line) {
		file := []byte(l.File)
		if l.FileBase64 != "" {
			var err error
			file, err = base64.StdEncoding.DecodeString(l.FileBase64)
			must(t, err)
		}
		var text []byte
		var err error
		switch l.Kind {
		case "pulled":
			var r waybill.ImagePulledRecord
			if r, err = waybill.DecodePulledRecord(file); err == nil {
				text, err = waybill.EncodePulledRecord(r, waybill.KubeletV1Beta1)
			}
		case "pulling":
			var i waybill.ImagePullIntent
			if i, err = waybill.DecodePullIntent(file); err == nil {
				text, err = waybill.EncodePullIntent(i, waybill.KubeletV1Beta1)
			}
		default:
			return
		}
		if err != nil || !l.Accepted || l.Rewritten == nil {
			return // stricter than the kubelet in places: the library's own tests know which
		}
		accepted++
		if got := parsed(t, text); !reflect.DeepEqual(got, l.Rewritten) {
			t.Errorf("%s: %v, want %v", l.Case, got, l.Rewritten)
		}
	})
	if accepted < 10 {
		t.Errorf("only %d files were accepted", accepted)
	}
}

func TestOtherDocuments(t *testing.T) {
	images, err := waybill.DecodeImageList([]byte(`{"images":[{"id":"sha256:1","repoTags":["a:v1"],"repoDigests":["a@sha256:2"],"pinned":true,"spec":{"runtimeHandler":"kata"}}]}`))
	want := []waybill.ImageOnNode{{ID: "sha256:1", RepoTags: []string{"a:v1"}, RepoDigests: []string{"a@sha256:2"}, RuntimeHandler: "kata", Pinned: true}}
	if err != nil || !reflect.DeepEqual(images, want) {
		t.Errorf("%+v, %v", images, err)
	}
	if images, err := waybill.DecodeImageList([]byte(`{"images":[]}`)); err != nil || images == nil || len(images) != 0 {
		t.Errorf("no images must be an empty list, not nil: %#v, %v", images, err)
	}
	uids, err := waybill.DecodePodList([]byte(`{"items":[{"metadata":{"uid":"u1"}},{"metadata":{"uid":"u2"}}]}`))
	if err != nil || !reflect.DeepEqual(uids, []string{"u1", "u2"}) {
		t.Errorf("%v, %v", uids, err)
	}
	handlers, err := waybill.DecodeRuntimeStatus([]byte(`{"runtimeHandlers":[{"name":"kata","features":{"user_namespaces":true}}]}`))
	if err != nil || len(handlers) != 1 || handlers[0].Name != "kata" || !handlers[0].UserNamespaces {
		t.Errorf("%+v, %v", handlers, err)
	}
	auths, err := waybill.DecodeAuthDocument([]byte(`{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}`))
	if want := []waybill.RegistryAuth{{Registry: "registry.example.com", Auth: waybill.AuthConfig{Username: "user", Password: "pass"}}}; err != nil || !reflect.DeepEqual(auths, want) {
		t.Errorf("%+v, %v", auths, err)
	}
	for what, err := range map[string]error{
		"images": second(waybill.DecodeImageList(nil)), "pods": second(waybill.DecodePodList([]byte("\xff"))),
		"status": second(waybill.DecodeRuntimeStatus([]byte("{}"))), "auths": second(waybill.DecodeAuthDocument([]byte("[]"))),
		"record": second(waybill.DecodePulledRecord([]byte("{}"))), "intent": second(waybill.DecodePullIntent([]byte(strings.Repeat("[", 1<<20)))),
		"preloaded": second(waybill.DecodePreloadedRecord([]byte("null"))),
	} {
		if err == nil {
			t.Errorf("%s: nonsense was read", what)
		}
	}
	preloaded := waybill.ImagePreloadedRecord{ImageRef: "sha256:1", LastUpdatedTime: time.Unix(1e9, 0).UTC(), ObservedImages: []string{"a", "b"}}
	text, err := waybill.EncodePreloadedRecord(preloaded, waybill.KubeletV1Beta1)
	must(t, err)
	if again, err := waybill.DecodePreloadedRecord(text); err != nil || !reflect.DeepEqual(again, preloaded) {
		t.Errorf("%s\n%+v, %v", text, again, err)
	}
	wantCode(t, second(waybill.EncodePullIntent(waybill.ImagePullIntent{Image: "a"}, 9)), waybill.ErrInvalidArgument)
}

func TestTimestamps(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-01-02T03:04:05Z":           time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"0001-01-01T00:00:00Z":           {},
		"9999-12-31T23:59:59.999999999Z": time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		"2026-01-02T03:04:05+02:00":      time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC),
	} {
		got, err := waybill.ParseTimestamp(text)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	text, err := waybill.FormatTimestamp(time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600)))
	if err != nil || text != "2026-01-02T02:04:05.000000999Z" {
		t.Errorf("%s, %v", text, err)
	}
	wantCode(t, second(waybill.FormatTimestamp(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.ParseTimestamp("yesterday")), waybill.ErrInvalidArgument)
}

func parsed(t testing.TB, text []byte) any {
	t.Helper()
	var value any
	must(t, json.Unmarshal(text, &value))
	return value
}
