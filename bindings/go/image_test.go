package waybill_test

import (
	"reflect"
	"testing"

	"waybill.dev/go"
)

func TestImageParts(t *testing.T) {
	digest := "sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	got, ok := waybill.ParseImage("localhost:5000/a/b:v1@" + digest)
	want := waybill.ImageParts{Name: "localhost:5000/a/b", Domain: "localhost:5000", Path: "a/b", Tag: "v1", Digest: digest}
	if !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	if got, ok := waybill.ParseImage("UPPER CASE"); ok || got != (waybill.ImageParts{}) {
		t.Errorf("%+v, %v", got, ok)
	}
	if full, err := waybill.NormaliseImage("nginx"); full != "docker.io/library/nginx:latest" || err != nil {
		t.Errorf("%q, %v", full, err)
	}
	wantCode(t, second(waybill.NormaliseImage("UPPER CASE")), waybill.ErrInvalidArgument)
	for image, want := range map[string]string{"nginx:1.27": "docker.io/library/nginx", "\xff no image": "\xff no image"} {
		if got, err := waybill.RepositoryOf(image); got != want || err != nil {
			t.Errorf("%q: %q, %v", image, got, err)
		}
	}
}

func TestCredentialHashes(t *testing.T) {
	hash, err := waybill.HashCredentials(waybill.AuthConfig{Username: "u", Password: "p", Email: "e"})
	if want := hexSHA256(`{"username":"u","password":"p","email":"e"}`); hash != want || err != nil {
		t.Errorf("%s, %v", hash, err)
	}
}

func TestPlatforms(t *testing.T) {
	p, err := waybill.ParsePlatform("linux/aarch64/v8")
	if want := (waybill.Platform{OS: "linux", Architecture: "arm64"}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = waybill.NormalisePlatform(waybill.Platform{OS: "macos", Architecture: "x86_64"})
	if err != nil || p.String() != "darwin/amd64" {
		t.Errorf("%+v, %v", p, err)
	}
	p = waybill.Platform{OS: "windows", Architecture: "amd64", OSVersion: "10.0.20348.1970", OSFeatures: []string{"win32k"}}
	if got := p.String(); got != "windows/amd64 10.0.20348.1970 (win32k)" {
		t.Error(got)
	}
}

func TestChooseManifest(t *testing.T) {
	index, err := waybill.DecodeImageIndex([]byte(`{"schemaVersion":2,
		"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
		{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":11,
		 "digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001",
		 "platform":{"os":"linux","architecture":"amd64"}},
		{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":22,
		 "digest":"sha256:0000000000000000000000000000000000000000000000000000000000000002",
		 "platform":{"os":"linux","architecture":"arm64"}}]}`))
	must(t, err)
	if len(index) != 2 || index[1].Size != 22 || index[1].Platform.Architecture != "arm64" {
		t.Fatalf("%+v", index)
	}
	amd64 := waybill.Platform{OS: "linux", Architecture: "amd64"}
	arm64 := waybill.Platform{OS: "linux", Architecture: "arm64"}
	m, err := waybill.ChooseManifest(index, amd64, nil)
	if err != nil || m.Size != 11 {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = waybill.ChooseManifest(index, amd64, &arm64)
	if err != nil || m.Size != 22 {
		t.Errorf("%+v, %v", m, err)
	}
	wantCode(t, second(waybill.ChooseManifest(index, waybill.Platform{OS: "linux", Architecture: "s390x"}, nil)), waybill.ErrNotFound)
	wantCode(t, second(waybill.ChooseManifest(nil, amd64, nil)), waybill.ErrNotFound)
	wantCode(t, second(waybill.DecodeImageIndex(nil)), waybill.ErrInvalidArgument)
}
