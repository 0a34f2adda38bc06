// Package kubelet lets a kubelet keep its image pull records and its pods' user namespaces in a
// waybill store: adapters that satisfy the kubelet's own Go interfaces.
//
// The adapters are for Kubernetes 1.37 (v1.37.0) and 1.36, and with the build tag waybill_kubelet_1_35 for 1.35.
// They replace:
//
//	kubelet                                   here
//	pullmanager.NewFSPullRecordsAccessor      NewRecordsAccessor
//	pullmanager.NewImagePullManager           NewImagePullManager
//	userns.MakeUserNsManager                  MakeUsernsManager
//
// # A kubelet with waybill inside
//
// One command builds it, of a release that the Go module proxy has:
//
//	go run waybill.dev/go/kubelet/cmd/build v1.37.0 ./kubelet
//
// It makes the changes below in three files, which import:
//
//	waybill "waybill.dev/go"
//	waybillkubelet "waybill.dev/go/kubelet"
//	waybillstore "waybill.dev/go/store"
//
// # The image pull manager
//
// In pkg/kubelet/kuberuntime/kuberuntime_manager.go the signature of NewKubeGenericRuntimeManager changes.
// Its last parameter becomes
//
//	userNamespaces waybill.Pool
//
// and before the error it returns also the store,
//
//	*waybillstore.Store
//
// which is nil beside an error. Its only caller, besides a test, is NewMainKubelet.
//
// The branch under the feature gate KubeletEnsureSecretPulledImages makes a policy, a file accessor, a
// cache in front of it and the pull manager. In its place:
//
//	waybillStore, err := waybillkubelet.OpenStore(ctx, waybillkubelet.Setup{
//		Directory:          filepath.Join(rootDirectory, "waybill"),
//		KubeletDirectory:   rootDirectory,
//		VerificationPolicy: kubeletconfiginternal.ImagePullCredentialsVerificationPolicy(imagePullsCredentialVerificationPolicy),
//		Allowlist:          preloadedImagesCredentialVerificationWhitelist,
//		ImageService:       kubeRuntimeManager,
//		Settings:           waybill.Settings{Pool: userNamespaces, ShortNamesAnywhere: waybillkubelet.ShortNamesAnywhere(kubeRuntimeManager.runtimeName)},
//	})
//	if err != nil {
//		return nil, nil, nil, err
//	}
//	if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
//		imagePullManager, err = waybillkubelet.NewImagePullManager(waybillStore, kubeRuntimeManager,
//			waybillkubelet.CheckersOf(kubeRuntimeManager.runtimeName))
//		if err != nil {
//			return nil, nil, nil, fmt.Errorf("failed to create image pull manager: %w", err)
//		}
//		imageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)
//	}
//
// The import of k8s.io/utils/ptr has no user then. Its callers stay: images.NewImageManager takes
// the manager as an interface. Opening takes over what the kubelet's own manager left in image_manager/.
// There is no cache to size and no set of locks: a decision reads the store in place.
//
// The store is opened with the feature gate off, too: the user namespaces are in it. As such a kubelet
// records no pulls, the store then has a gap, and the first start with the gate on closes what came.
//
// The manager's methods do not say which of several pulls of one string ended. In
// pkg/kubelet/images/image_manager.go, pullImage therefore records the intent by
//
//	ctx, err = waybillkubelet.RecordPullIntent(ctx, m.imagePullManager, image)
//
// in place of its call of m.imagePullManager.RecordPullIntent, so that the context with which the end is
// recorded says it. Without this change a success counts as begun with the oldest of its string.
//
// Behind the statement that gets the pull's result stands
//
//	ctx = waybillkubelet.WithPulledCredential(ctx, m.imagePullManager, imgSpec.RuntimeHandler, imagePullResult.credentialsUsed)
//
// by which the end is recorded with who checked the credentials, and until when they are good.
//
// # The user namespace manager
//
// In pkg/kubelet/kubelet.go, NewMainKubelet gets the pool before it calls NewKubeGenericRuntimeManager.
// The variable usernsIDsPerPod moves up with it:
//
//	var usernsIDsPerPod *int64
//	if kubeCfg.UserNamespaces != nil {
//		usernsIDsPerPod = kubeCfg.UserNamespaces.IDsPerPod
//	}
//	userNamespaces, err := waybillkubelet.UserNamespacesOf(logger, klet, usernsIDsPerPod)
//	if err != nil {
//		return nil, err
//	}
//
// It passes userNamespaces as the last argument, and takes waybillStore as the third result. Where it
// called userns.MakeUserNsManager:
//
//	klet.usernsManager, err = waybillkubelet.MakeUsernsManager(logger, waybillStore, klet)
//
// The field of Kubelet becomes
//
//	usernsManager waybillkubelet.UserNamespaceManager
//
// and the import of k8s.io/kubernetes/pkg/kubelet/userns has no user. The three callers of the manager stay
// as they are. Opening takes over the mappings in the pods' directories.
//
// # The records alone
//
// The smallest change keeps the kubelet's own manager, and swaps its file accessor alone. OpenStore gets
// ForAccessor, and no policy:
//
//	fsRecordAccessor, err := waybillkubelet.NewRecordsAccessor(waybillStore)
//
// Pass it to pullmanager.NewImagePullManager without NewCachedPullRecordsAccessor. A store in mode
// strict is refused. Records are then durable and
// survive a damaged disk, but the rules are the kubelet's.
//
// # Forgetting what is deleted
//
// A kubelet never learns that a Secret is gone. Where its operator grants the permission (see
// WatchCredentials: it is one to read every Secret), one call forgets at once what is deleted, and at
// its start what was deleted before:
//
//	client, err := metadata.NewForConfig(config)
//	if err != nil {
//		return err
//	}
//	go waybillkubelet.WatchCredentials(ctx, store, client)
//
// Informers that run anyway, of namespaces and service accounts only or of a part of the cluster, do
// for what is deleted while they run; they are never taken for the truth:
//
//	go waybillkubelet.ForgetDeleted(ctx, store, waybillkubelet.CredentialInformers{Namespaces: namespaces})
//
// Settings.MaxAgeSeconds lets proofs expire, without asking anybody.
//
// # Rules
//
// In waybill.ModeKubelet every answer, metric label and stored state is the kubelet's own; the
// tests of this package compare them with the kubelet's code. In waybill.ModeStrict, the default,
// an image is open because a credential was proven for it, or because it is known to have come to the
// node without the kubelet; a missing record opens nothing. To know it, the image pull manager asks
// the runtime for its images: before its first pull, at each garbage collection, and if nothing is
// known of an image that a pod wants (at most once a second: it waits for its turn). After a pull
// that failed it asks whether the image is there.
//
// # Back to a kubelet without waybill
//
// Image pull manager and accessor keep in the kubelet directory that the store took over a record without
// credentials of each image that was pulled, and the intents of open pulls. So a kubelet without waybill
// that is started in place of this one verifies instead of opening; `waybill export` gives it all that
// was proven.
//
// # Metrics
//
// Decisions are counted in the kubelet's own kubelet_imagemanager_image_mustpull_checks_total, and the
// gauges kubelet_imagemanager_ondisk_pullintents and _ondisk_pulledrecords are updated, so dashboards
// keep working. The two gauges of the in-memory cache stay 0: there is no cache. Beside them are the
// store's own metrics, waybill_…: monitoring/README.md has rules and a dashboard.
package kubelet
