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
	errorIf(t, !ok || got != want, "%+v, %v", got, ok)
	got, ok = waybill.ParseImage("UPPER CASE")
	errorIf(t, ok || got != (waybill.ImageParts{}), "%+v, %v", got, ok)
	full, err := waybill.NormaliseImage("nginx")
	errorIf(t, full != "docker.io/library/nginx:latest" || err != nil, "%q, %v", full, err)
	wantCode(t, second(waybill.NormaliseImage("UPPER CASE")), waybill.ErrInvalidArgument)
	for image, want := range map[string]string{"nginx:1.27": "docker.io/library/nginx", "\xff no image": "\xff no image"} {
		got, err := waybill.RepositoryOf(image)
		errorIf(t, got != want || err != nil, "%q: %q, %v", image, got, err)
	}
}

func TestCredentialHashes(t *testing.T) {
	hash, err := waybill.HashCredentials(waybill.AuthConfig{Username: "u", Password: "p", Email: "e"})
	want := hexSHA256(`{"username":"u","password":"p","email":"e"}`)
	errorIf(t, hash != want || err != nil, "%s, %v", hash, err)
}

func TestPlatforms(t *testing.T) {
	p, err := waybill.ParsePlatform("linux/aarch64/v8")
	want := (waybill.Platform{OS: "linux", Architecture: "arm64"})
	errorIf(t, err != nil || !reflect.DeepEqual(p, want), "%+v, %v", p, err)
	p, err = waybill.NormalisePlatform(waybill.Platform{OS: "macos", Architecture: "x86_64"})
	errorIf(t, err != nil || p.String() != "darwin/amd64", "%+v, %v", p, err)
	p = waybill.Platform{OS: "windows", Architecture: "amd64", OSVersion: "10.0.20348.1970", OSFeatures: []string{"win32k"}}
	wantEqual(t, p.String(), "windows/amd64 10.0.20348.1970 (win32k)")
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
	fatalIf(t, len(index) != 2 || index[1].Size != 22 || index[1].Platform.Architecture != "arm64", "%+v", index)
	amd64 := waybill.Platform{OS: "linux", Architecture: "amd64"}
	arm64 := waybill.Platform{OS: "linux", Architecture: "arm64"}
	m, err := waybill.ChooseManifest(index, amd64, nil)
	errorIf(t, err != nil || m.Size != 11, "%+v, %v", m, err)
	m, err = waybill.ChooseManifest(index, amd64, &arm64)
	errorIf(t, err != nil || m.Size != 22, "%+v, %v", m, err)
	wantCode(t, second(waybill.ChooseManifest(index, waybill.Platform{OS: "linux", Architecture: "s390x"}, nil)), waybill.ErrNotFound)
	wantCode(t, second(waybill.ChooseManifest(nil, amd64, nil)), waybill.ErrNotFound)
	wantCode(t, second(waybill.DecodeImageIndex(nil)), waybill.ErrInvalidArgument)
}
