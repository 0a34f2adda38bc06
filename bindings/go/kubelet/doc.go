// Package kubelet lets a kubelet keep its image pull records and its pods' user namespaces in a
// waybill store: adapters that satisfy the kubelet's own Go interfaces.
//
// The adapters are for k8s.io/kubernetes v1.36.3. What they take the place of:
//
//	kubelet                                   here
//	pullmanager.NewFSPullRecordsAccessor      NewRecordsAccessor
//	pullmanager.NewImagePullManager           NewImagePullManager
//	userns.MakeUserNsManager                  MakeUsernsManager
//
// # Swapping in the image pull manager
//
// In pkg/kubelet/kuberuntime/kuberuntime_manager.go, NewKubeGenericRuntimeManager, the branch under
// the feature gate KubeletEnsureSecretPulledImages (lines 322 to 350) makes a policy, a file
// accessor, a cache in front of it and the pull manager. In their place:
//
//	store, err := waybillkubelet.OpenStore(ctx, waybillkubelet.Setup{
//		Directory:          filepath.Join(rootDirectory, "waybill"),
//		KubeletDirectory:   rootDirectory,
//		VerificationPolicy: imagePullsCredentialVerificationPolicy,
//		Allowlist:          preloadedImagesCredentialVerificationWhitelist,
//		ImageService:       kubeRuntimeManager,
//	})
//	if err != nil {
//		return nil, nil, err
//	}
//	imagePullManager, err = waybillkubelet.NewImagePullManager(store, kubeRuntimeManager)
//	if err != nil {
//		return nil, nil, err
//	}
//	imageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)
//
// No caller changes: images.NewImageManager takes the manager as the interface that it is. Opening
// takes over what the kubelet's own manager left in image_manager/, and there is neither a cache to
// size nor a lock set: a decision reads the store in place.
//
// Who wants the smallest change keeps the kubelet's own manager and swaps line 331 alone, with an
// open store:
//
//	fsRecordAccessor, err := waybillkubelet.NewRecordsAccessor(store)
//
// and passes it to NewImagePullManager without NewCachedPullRecordsAccessor. Records are then
// durable and survive a damaged disk, but the rules are the kubelet's.
//
// # Swapping in the user namespace manager
//
// In pkg/kubelet/kubelet.go NewMainKubelet finds out the pool before it calls
// NewKubeGenericRuntimeManager (line 773), which opens the store with it (Setup.UserNamespaces) and
// returns the store beside its other results:
//
//	userNamespaces, err := waybillkubelet.UserNamespacesOf(logger, klet, usernsIDsPerPod)
//
// The field usernsManager of Kubelet (line 1571) becomes a UserNamespaceManager, and is made of that
// store (line 1172):
//
//	klet.usernsManager, err = waybillkubelet.MakeUsernsManager(logger, store, klet)
//
// Its three callers stay as they are: Kubelet.GetOrCreateUserNamespaceMappings (kubelet_pods.go, line
// 575), HandlePodCleanups (kubelet_pods.go, line 1297) and SyncTerminatedPod (kubelet.go, line 2518).
// Opening takes over the mappings in the pods' directories.
//
// # Rules
//
// Under waybill.RulesKubelet every answer, metric label and stored state is the kubelet's own; the
// tests of this package have the kubelet's code as their judge. Under waybill.RulesClosed, the
// default, the same holds but for five rules, each of which keeps an image closed that the kubelet
// would open by mistake.
//
// # Metrics
//
// The decisions are counted in the kubelet's own kubelet_imagemanager_image_mustpull_checks_total,
// and the gauges kubelet_imagemanager_ondisk_pullintents and _ondisk_pulledrecords are kept, so
// that dashboards go on working. The two gauges of the in-memory cache stay 0: there is none.
package kubelet
