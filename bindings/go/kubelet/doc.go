// Package kubelet lets a kubelet keep its image pull records and its pods' user namespaces in a
// waybill store: adapters that satisfy the kubelet's own Go interfaces.
//
// The adapters are for Kubernetes 1.37 (v1.37.0) and 1.36, and with the build tag waybill_kubelet_1_35 for 1.35;
// the change compiles for 1.38, too (v1.38.0-beta.0).
// They replace:
//
//	kubelet                                   here
//	pullmanager.NewFSPullRecordsAccessor      NewRecordsAccessor
//	pullmanager.NewImagePullManager           NewImagePullManager
//	userns.MakeUserNsManager                  MakeUsernsManager
//
// One command builds a kubelet with waybill inside, of a release that the Go module proxy has. What it
// changes is a table of texts, internal/change/change.go:
//
//	go run waybill.dev/go/kubelet/cmd/build v1.37.0 ./kubelet
//
// README.md says what the adapters ask the runtime, keep for a kubelet without waybill, and forget.
//
// # Rules
//
// In waybill.ModeKubelet every answer, metric label and stored state is the kubelet's own; the
// tests of this package compare them with the kubelet's code. In waybill.ModeStrict, the default,
// an image is open because a credential was proven for it, or because it is known to have come to the
// node without the kubelet; a missing record opens nothing.
//
// # The records alone
//
// The smallest change keeps the kubelet's own manager, and swaps its file accessor alone. OpenStore gets
// ForAccessor, and no policy:
//
//	fsRecordAccessor, err := waybillkubelet.NewRecordsAccessor(waybillStore)
//
// Pass it to pullmanager.NewImagePullManager without NewCachedPullRecordsAccessor. Records are then durable and
// survive a damaged disk, but the rules are the kubelet's: a store in mode strict is refused.
//
// # Metrics
//
// Decisions are counted in the kubelet's own kubelet_imagemanager_image_mustpull_checks_total, and the
// gauges kubelet_imagemanager_ondisk_pullintents and _ondisk_pulledrecords are updated, so dashboards
// keep working. The two gauges of the in-memory cache stay 0: there is no cache. Beside them are the
// store's own metrics, waybill_…: monitoring/README.md has rules and a dashboard.
package kubelet
