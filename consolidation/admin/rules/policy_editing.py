"""Writing a policy: entered, shown with what it changes, then saved onto the version it was shown against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from consolidation import calibrating, revising
from consolidation.admin.rules.policy_form import Draft, shown
from consolidation.admin.rules.policy_reading import read
from consolidation.admin.rules.policy_words import Difference, differences
from consolidation.admin.texts import when
from consolidation.models import Policy, PolicyRevision
from consolidation.operations import Json, visible
from consolidation.policy import Policy as Rules
from observations.admin.base import Reach, Screen, signed_in
from observations.retrieval import current_embedder

UNUSABLE = 422  # the form cannot be saved as it is
MEANWHILE = 409  # somebody else saved first


@dataclass(slots=True)
class Editing:
    """One request to write a policy: `policy` is the stored one, None for a pattern that has none yet."""

    screen: Screen
    request: HttpRequest
    policy: Policy | None
    pattern: str

    def answer(self) -> HttpResponse:
        """The form, the form with what it changes, or the page of the saved policy."""
        return self._posted() if self.request.method == "POST" else self._begun()

    # --- the form

    def _begun(self) -> HttpResponse:
        older = self.request.GET.get("version", "")
        if self.policy is None or not older:
            return self._render(self._draft(held=self._held()[0]))
        if not (older.isascii() and older.isdigit() and len(older) < 9):
            raise Http404
        revision = revising.revision(pattern=self.pattern, version=int(older))
        if revision is None:
            raise Http404
        held = Rules.salvaged(revision.body or {})
        return self._render(self._draft(held=held), entered=held, restored=revision)

    def _held(self) -> tuple[Rules, str]:
        """What holds now for the pattern, and why it cannot be read, if so."""
        row = self._stored()
        return read(row) if row is not None else (Rules(), "")

    def _before(self) -> Mapping[str, Json]:
        """The stored body that a change is shown against."""
        row = self._stored()
        found: Mapping[str, Json] = row.body if row is not None else {}
        return found

    def _stored(self) -> Policy | None:
        """The policy that holds for the pattern; nothing is told of patterns that are not this person's."""
        if self.policy is not None or not Reach.of(self.request).covers(self.pattern):
            return self.policy
        return revising.wider(pattern=self.pattern)

    def _draft(self, *, held: Rules, posted: bool = False) -> Draft:
        profile = calibrating.in_force(profile=current_embedder().profile)
        return Draft.of(
            self.request.POST if posted else None,
            held=held,
            measured=f"Measured for {profile.name}: {profile.t_merge:g}.",
            pattern=self.pattern,
            settled=self.policy is not None,
        )

    # --- what was posted

    def _posted(self) -> HttpResponse:
        draft = self._draft(held=self._held()[0], posted=True)
        entered = draft.policy(pattern=self.pattern, profile=current_embedder().profile)
        if draft.named is not None and not draft.named.errors and (refusal := self._not_yours()):
            draft.named.add_error("pattern", refusal)
            entered = None
        if entered is None:
            return self._render(draft, status=UNUSABLE)
        version = self.policy.version if self.policy else revising.NEW
        if self.policy is not None and self.request.POST.get("version") != str(version):
            return self._conflict(draft, entered)
        token = shown(pattern=self.pattern, policy=entered, version=version)
        if "save" not in self.request.POST or self.request.POST.get("shown") != token:
            return self._render(draft, entered=entered)
        return self._save(draft, entered, version)

    def _not_yours(self) -> str:
        """Why this person may not begin a policy for the pattern. One query."""
        reach = Reach.of(self.request)
        if not reach.covers(self.pattern):
            mine = ", ".join(map(visible, reach.patterns)) or "none"
            return f"You may set rules for the scopes you were given only: {mine}."
        if Policy.objects.filter(pattern=self.pattern).exists():
            return f"{visible(self.pattern)} has a policy already: change that one."
        return ""

    def _save(self, draft: Draft, entered: Rules, version: int) -> HttpResponse:
        by = signed_in(self.request).get_username()
        try:
            saved = revising.revise(pattern=self.pattern, policy=entered, by=by, version=version)
        except revising.Conflict as conflict:
            if conflict.current is None:
                messages.error(self.request, visible(str(conflict)))
                return redirect(f"admin:{self.screen.url_name('changelist')}")
            self.policy = conflict.current
            return self._conflict(draft, entered)
        if saved.version == version:
            messages.info(self.request, "Nothing was changed, so nothing was saved.")
        else:
            messages.success(
                self.request, f"Version {saved.version} of the policy of {visible(self.pattern)} is saved."
            )
        return redirect(f"admin:{self.screen.url_name('change')}", pk=saved.pk)

    def _conflict(self, draft: Draft, entered: Rules) -> HttpResponse:
        """Somebody saved meanwhile: who, when and what; what was entered stays, shown against the new version."""
        posted = self.request.POST.get("version", "")
        seen = None
        if posted.isascii() and posted.isdigit() and len(posted) < 9:
            seen = revising.revision(pattern=self.pattern, version=int(posted))
        meanwhile = differences(seen.body or {}, self.policy.body) if seen and self.policy else []
        sentence = visible(str(revising.Conflict(pattern=self.pattern, current=self.policy)))
        return self._render(draft, entered=entered, conflict=sentence, meanwhile=meanwhile, status=MEANWHILE)

    # --- the page

    def _render(
        self,
        draft: Draft,
        *,
        entered: Rules | None = None,
        restored: PolicyRevision | None = None,
        conflict: str = "",
        meanwhile: list[Difference] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        version = self.policy.version if self.policy else revising.NEW
        name = visible(self.pattern)
        context = {
            "title": f"Change the policy of {name}" if self.policy else "A new policy",
            "pk": self.policy.pk if self.policy else None,
            "pattern": name,
            "draft": draft,
            "groups": list(draft.form.groups()),
            "version": version,
            "next": version + 1,
            "next_words": f"As version {version + 1}",
            "saved_by": visible(self.policy.updated_by) if self.policy else "",
            "saved_at": when(self.policy.updated_at) if self.policy else "",
            "broken": self._held()[1],
            "previewed": entered is not None,
            "changed": differences(self._before(), entered.to_dict()) if entered else [],
            "shown": shown(pattern=self.pattern, policy=entered, version=version) if entered else "",
            "restored": restored.version if restored else None,
            "conflict": conflict,
            "meanwhile": meanwhile or [],
        }
        return self.screen.render(self.request, "admin/consolidation/policy/edit.html", context, status=status)
