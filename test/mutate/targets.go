package main

// target is what is changed in a package, and by which tests it is judged.
type target struct {
	dir   string
	files []string
	tests string
	// slow are those of them that run only with mutants which survive the others.
	slow string
	// program is true for a package main.
	program bool
	// server is true when the tests need an API server, which each run of them starts.
	server bool
	// statements means that these are left out, too.
	statements bool
}

var targets = []target{
	{
		dir: "core/machinedeployment",
		files: []string{
			"ahead.go", "annotations.go", "awaited.go", "chosen.go", "cleanup.go", "decreases.go", "ondelete.go", "paused.go", "planner.go",
			"progress.go", "rollback.go", "rolling.go", "tracker.go",
		},
		tests: "^(TestPlan|TestPlanOfAnyView|TestSimulation|TestCalmRolloutReplacesEachMachineOnce|TestPlanNarrowly|TestPlanOfOddViews|" +
			"TestMarksStopNoRollout|TestHistory.*|TestReportedProgress|TestProgress.*|TestStall|TestSlowDeletionsAreNamed|TestSimulatedStalls.*|" +
			"TestRollbackTarget.*|TestRollbackIs.*|TestRestore.*|TestResolve.*|TestRecreate|TestDecreases.*|TestSetThatStaysAhead.*|TestAheadOf.*|TestAwait.*|" +
			"TestInvalidIsWhatAdmissionRefuses|TestAdmissionKnowsTheAnnotations|TestTracker.*)$",
		slow: "^TestMarksStopNoRollout$",
	},
	{
		dir: "core/machineset",
		files: []string{
			"expectations.go", "expectations_names.go", "held.go", "names.go", "pace.go", "reservation.go",
			"scale_plan.go", "waitlist.go",
		},
		tests: "^Test(Plan.*|Reservation.*|ReservedNamesDepend.*|" +
			"NamesAreRetired.*|OpenNames.*|SeedsDoNotPileUp|MarksOfTheServer.*|Expectations.*|Pace|Held.*|AReasonThatHoldsUp.*|" +
			"APreserveMaxThatIsNoNumber|MachineName|WaitList|OnlyWhatMakesRoomWakes|AllThatMakesRoomWakes)$",
	},
	{dir: "core/machines", files: []string{"available.go", "order.go", "outdated.go", "preserve.go"}, tests: "."},
	{
		dir: "core/health", files: []string{"assessment.go", "defaults.go", "history.go", "judge.go", "limit.go", "lost.go", "policy.go"},
		tests: ".",
	},
	{
		dir:   "core/remediation",
		files: []string{"candidates.go", "decide.go", "decision.go", "failures.go", "flight.go", "policy.go", "record.go", "slots.go", "view.go"},
		tests: ".", slow: "^TestSimulation$",
	},
	{
		dir:   "core/safety/freeze",
		files: []string{"decide.go", "freezer.go"},
		tests: ".",
	},
	{
		dir: "core/safety/overshoot", files: []string{"count.go", "judge.go", "mark.go", "memory.go"},
		tests: "^Test(Frozen|Hysteresis|OptionsAreChecked|Surge|Condition|LabelOfSet|TheGuardNotifiesOnce)$",
	},
	{
		dir: "core/machine",
		files: []string{
			"conditions.go", "conditions_node.go", "conditions_reference.go", "conditions_sync.go", "conditions_update.go",
			"identity.go", "infrastructure.go", "nodesync.go", "phase.go", "taints.go",
		},
		tests: "^(Test(AwaitedConnection|NodeConditions|OutageOfTheTarget|Available|ReadinessGates|Remaining|MayGiveUp|Hooks|KubeletBehind|SizeOfTheOlderForm|" +
			"Evidence|Holder|ChooseNode.*|RefusalsAreShort|InstanceGone|ForcedOffVolumes|SyncNode|WhatGoesToTheNode|Desired|FirstSyncThatFails|" +
			"LaterSyncThatFails|NodeThatClaimsToBeSynced|WhatIsNotReadIsNotConcluded|ToPhase|SyncTaints|TaintsStayOutWithTheGateClosed|" +
			"Outdated.*OfAUser|OutdatedNode|OutdatedRevision|ScaleDownAnnotationOfAUser|LinkedWith|ASyncThatFindsAnotherNode|" +
			"AFightOverTheNodeIsReported|UpToDateIsLookedAtWhenARolloutIsDue|YouthEndsWhateverTheClocksSay|ReferenceReasonsOfEachCondition|Pure.*)|Fuzz.*)$",
	},
	{
		dir:   "core/drain",
		files: []string{"decide.go", "force.go", "handovers.go", "plan.go", "rules.go"},
		tests: "^(Test(Decide|Trim|Unreachable|Unsatisfiable|Make.*Plan.*|Move.*|Without.*|Refused.*|ToOutcome.*|ToMessage.*|Done|RulesDecide|CompileRules.*)|Fuzz.*)$",
		slow:  "^TestMakePlan_RandomInput$",
	},
	{dir: "contracts/controller/conditions", files: []string{"conditions.go", "deprecated.go"}, tests: "."},
	{dir: "contracts/controller/bulkhead", files: []string{"bulkhead.go"}, tests: "."},
	{dir: "contracts/controller/diagnostics", files: []string{"diagnostics.go", "filter.go"}, tests: ".", server: true},
	{dir: "contracts/controller/events", files: []string{"events.go", "pending.go"}, tests: "."},
	{dir: "contracts/controller/manager", files: []string{"options.go", "program.go"}, tests: "."},
	{dir: "contracts/controller/outcome", files: []string{"outcome.go"}, tests: "."},
	{dir: "contracts/controller/paused", files: []string{"paused.go"}, tests: "."},
	{dir: "contracts/controller/persist", files: []string{"metrics.go", "persist.go", "refusal.go", "stale.go"}, tests: "."},
	{dir: "contracts/controller/predicates", files: []string{"changes.go", "watchlabel.go"}, tests: "."},
	{dir: "contracts/controller/scopes", files: []string{"base.go"}, tests: "."},
	{dir: "contracts/controller/wake", files: []string{"wake.go"}, tests: "."},
	{
		dir: "contracts/remote",
		files: []string{
			"alarm.go", "bounded.go", "connection.go", "connections.go", "errors.go", "kubeconfig.go", "metrics.go", "predicates.go", "probes.go",
			"reconciler.go", "runner.go", "single.go", "suspect.go", "unanswered.go",
		},
		tests: ".", slow: "^Test(DialsKeepTheirDistance|ProbesAfterOneThatFailed|AnAnswerWithoutEndIsCut)$",
	},
	{dir: "contracts/conformance", files: []string{"case.go", "collect.go", "profile.go", "run.go", "selection.go"}, tests: "."},
	{dir: "contracts/conformance/report", files: []string{"encode.go", "judge.go", "junit.go", "markdown.go"}, tests: "."},
	{dir: "core/limits", files: []string{"limits.go"}, tests: "."},
	{
		dir: "core/remote",
		files: []string{
			"connection.go", "connections.go", "contest.go", "errors.go", "lane.go", "lookup.go", "node.go", "read.go", "reading.go",
			"requests.go", "silence.go", "written.go",
		},
		tests: "^Test(AnAnswer.*|WhatIsUnderWay.*|ANewerRequest.*|AClosedConnection.*|WhatWasWritten.*|AnOwnerOf.*|WhatIsNotAllowed.*|" +
			"WhenNoCaller.*|Lookups?.*|ALookup.*|ARequest.*|Lane.*|DirectRequests.*|ErrorsOf.*|PagesOfNodes|Trouble|Withdrawn|" +
			"NodesThatAre.*|AReadThatIsAnswered.*|Reading|ReadingAgain|ReadingEnds.*|OneLine|AWatch.*|ASilentWatch.*|Streams.*|AStream.*|" +
			"Watches.*|ChangesOf.*|ChangesCountAs.*|AFightIsBounded|WhatStandsIsForgotten|LastManager.*|PausesDouble|" +
			"TheLongestPauseCounts|TheOtherWriter.*|NodesWithoutUIDs.*|RepeatedChanges.*|ContestedError.*|Trim|TextsOfNodes.*|Changed|" +
			"WhichChanges.*|NodesOfAProviderID|WhoIsWokenByAnAnswer|NodesThatMayNotBeRead.*|TheCacheOfNodes|ClustersWithout.*|" +
			"WhatIsWithdrawn.*|WhatAConnectionIsCheckedFor|WhatIsReadOf.*)$",
		slow: "^TestWhatIsUnderWayIsBounded$",
	},
	{
		dir: "core/external",
		files: []string{
			"changed.go", "condition.go", "informers.go", "kinds.go", "live.go", "opening.go", "own.go", "predicates.go", "requests.go",
			"served.go", "trim.go",
		},
		tests: "^Test(A[nN].*|AD.*|AKindThatIs.*|AL.*|AM.*|Changed|D.*|EachChange|Gone|Live|Mirrored|Own|Re.*|Trim.*|W.*)$",
	},
	{
		dir: "bootstrap/cloudconfig/approval", files: []string{"awaited.go", "serving.go"},
		tests: "^Test(ServingCertificates|WhatBecomesOfAServingRequest|AServingRequestThatCannotBeRead|AnApprovalOfAServingRequest|" +
			"ServingRequestsOfACluster.*|ALinkWakes.*|TheLatestRequest.*)$",
	},
	{
		dir: "bootstrap/cloudconfig/approval", files: []string{"cache.go", "decide.go", "outcomes.go", "refusals.go"},
		tests: "^(TestDecide|TestUndecided|TestNodeOf|TestParseApproval|TestARefusalExplainsWhatIsNotVisibleAtTheMachine|FuzzDecide|" +
			"TestTheSizeOfARequest|TestRefusalsAre.*|TestTheCacheKeeps.*|TestTheLatestRequestCounts|TestStatesOfRequests|TestWhatIsNoted.*|" +
			"TestARefusedMachine.*|TestARequestOfNoToken.*|TestAnEventOf.*)$",
	},
	{
		dir:   "bootstrap/cloudconfig/controller",
		files: []string{"conditions.go", "conditions_join.go"},
		tests: "^Test(Conditions|Explain|Deadlines|AFinalizerThatCannotBeWritten|WhatTheStatusIsAbout|ConditionsOfAnEarlierTurnAreKept|" +
			"NodeJoined|StageOfAJoin|ConditionsBeforeAnyStep|ReadyOfALinkElsewhere|ClaimsAreCut)$",
	},
	{dir: "providers/driver/spread", files: []string{"choose.go", "decisions.go"}, tests: "."},
	{dir: "providers/driver/batch", files: []string{"batch.go", "queue.go"}, tests: "."},
	{
		dir: "providers/driver/inframachine",
		files: []string{
			"assess.go",
			"backoff.go",
			"conditions.go",
			"conditions_reachable.go",
			"finish.go",
			"interrupted.go",
			"interrupted_keep.go",
			"launch_types.go",
			"mark.go",
			"notice.go",
			"record.go",
			"status.go",
			"terminate_all.go",
			"unprotect.go",
		},
		tests: ".", slow: "^TestACrashAtEveryStep$",
	},
	{dir: "providers/driver/limit", files: []string{"bucket.go", "queue.go"}, tests: ".", slow: "^TestALimitThatIsThreeTimesTooHighSettles$"},
	{
		dir:   "providers/driver/orphans",
		files: []string{"claims.go", "decide.go", "known.go", "launched.go", "leftovers.go", "record.go", "store.go"},
		tests: ".", slow: "^TestWhateverHappensNothingThatIsClaimedIsEnded$",
	},
	{dir: "providers/driver/shortage", files: []string{"memory.go"}, tests: "."},
	{dir: "providers/aws/interruption", files: []string{"event.go", "record.go"}, tests: "."},
	{dir: "providers/driver/inventory", files: []string{"outage.go"}, tests: "."},
	{dir: "providers/aws/instance", files: []string{"convert.go", "errors.go", "terminate.go"}, tests: "."},
	{dir: "test/clouds/example/provider/instance", files: []string{"client.go", "driver.go", "errors.go"}, tests: "."},
	{
		dir: "test/clouds/example/cloud", files: []string{"faults.go", "limits.go", "lists.go", "machines.go", "operations.go", "parts.go"},
		tests: ".", slow: "^TestManyLives$",
	},
	{dir: "config/images", files: []string{"base.go", "image.go", "main.go", "sbom.go"}, tests: ".", program: true},
	{
		dir: "test/start", files: []string{"clusters.go", "main.go", "turn.go"},
		tests: "^Test(CommandLine|WhoHasEnded|Kubeconfigs|HomeInAPath|WhereWebhooksMayBe|ProvidersAndFlags|ExitCode)$", program: true,
	},
}
