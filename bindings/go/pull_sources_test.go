package waybill_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"waybill.dev/go"
)

// Each field passes through C in both directions.
func TestPullSources(t *testing.T) {
	root := scratch(t)
	has := func(path, content string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o644))
	}
	has("etc/containerd/config.toml", `
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata-remote]
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."*"]
endpoint = ["http://127.0.0.1:5000", "https://registry.example.com"]
`)
	pulls := value(waybill.ReadRuntimePulls(waybill.RuntimeAnswers{Version: "containerd 1.7.27", Root: root}))
	sources := value(waybill.PullSourcesOf(pulls, image, ""))
	want := waybill.PullSources{
		Registry: "registry.example.com",
		Others: []waybill.PullSource{{
			Host:            "127.0.0.1:5000",
			ServesManifests: true,
			ServesLayers:    true,
			Insecure:        true,
			Open:            true,
			OpenBecause:     sources.Others[0].OpenBecause,
			Where:           "/etc/containerd/config.toml, line 5",
		}},
		Checker: waybill.CheckerMirror,
	}
	errorIf(t, !reflect.DeepEqual(sources, want), "%+v", sources)
	guest := value(waybill.PullSourcesOf(pulls, image, "kata-remote"))
	errorIf(t, guest.Checker != waybill.CheckerGuest || guest.Checker.String() != "guest", "%+v", guest)
	pulls.Problems = append(pulls.Problems, "seen by the caller")
	unknown := value(waybill.PullSourcesOf(pulls, image, ""))
	errorIf(t, unknown.Checker != waybill.CheckerUnknown || !reflect.DeepEqual(unknown.Problems, pulls.Problems), "%+v", unknown)
}
