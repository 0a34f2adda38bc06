package waybill_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

func TestKubeletRecords(t *testing.T) {
	record := waybill.ImagePulledRecord{
		ImageRef: ref, LastUpdatedTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		CredentialMapping: map[string]waybill.ImagePullCredentials{appName: {
			KubernetesSecrets:         []waybill.ImagePullSecret{secret, equal},
			KubernetesServiceAccounts: []waybill.ImagePullServiceAccount{account},
		}, "nginx": forAll},
	}
	text := value(waybill.EncodePulledRecord(record, waybill.KubeletV1Beta1))
	again, err := waybill.DecodePulledRecord(text)
	errorIf(t, err != nil || !reflect.DeepEqual(again, record), "%s\n%+v, %v", text, again, err)
	text = value(waybill.EncodePullIntent(waybill.ImagePullIntent{Image: image}, waybill.KubeletV1Alpha1))
	if again, err := waybill.DecodePullIntent(text); err != nil || again.Image != image || !strings.Contains(string(text), "v1alpha1") {
		t.Errorf("%s\n%+v, %v", text, again, err)
	}
}

func TestOtherDocuments(t *testing.T) {
	images, err := waybill.DecodeImageList([]byte(`{"images":[{"id":"sha256:1","repoTags":["a:v1"],"repoDigests":["a@sha256:2"],"pinned":true,"spec":{"runtimeHandler":"kata"}}]}`))
	want := []waybill.ImageOnNode{{ID: "sha256:1", RepoTags: []string{"a:v1"}, RepoDigests: []string{"a@sha256:2"}, RuntimeHandler: "kata", Pinned: true}}
	errorIf(t, err != nil || !reflect.DeepEqual(images, want), "%+v, %v", images, err)
	images, err = waybill.DecodeImageList([]byte(`{"images":[]}`))
	errorIf(t, err != nil || images == nil || len(images) != 0, "no images must be an empty list, not nil: %#v, %v", images, err)
	uids, err := waybill.DecodePodList([]byte(`{"items":[{"metadata":{"uid":"u1"}},{"metadata":{"uid":"u2"}}]}`))
	errorIf(t, err != nil || !reflect.DeepEqual(uids, []string{"u1", "u2"}), "%v, %v", uids, err)
	handlers, err := waybill.DecodeRuntimeStatus([]byte(`{"runtimeHandlers":[{"name":"kata","features":{"user_namespaces":true}}]}`))
	errorIf(t, err != nil || len(handlers) != 1 || handlers[0].Name != "kata" || !handlers[0].UserNamespaces, "%+v, %v", handlers, err)
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
		errorIf(t, err == nil, "%s: nonsense was read", what)
	}
	preloaded := waybill.ImagePreloadedRecord{ImageRef: "sha256:1", LastUpdatedTime: time.Unix(1e9, 0).UTC(), ObservedImages: []string{"a", "b"}}
	text := value(waybill.EncodePreloadedRecord(preloaded, waybill.KubeletV1Beta1))
	again, err := waybill.DecodePreloadedRecord(text)
	errorIf(t, err != nil || !reflect.DeepEqual(again, preloaded), "%s\n%+v, %v", text, again, err)
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
		errorIf(t, err != nil || !got.Equal(want), "%s: %v, %v", text, got, err)
	}
	text, err := waybill.FormatTimestamp(time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600)))
	errorIf(t, err != nil || text != "2026-01-02T02:04:05.000000999Z", "%s, %v", text, err)
	wantCode(t, second(waybill.FormatTimestamp(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.ParseTimestamp("yesterday")), waybill.ErrInvalidArgument)
}
