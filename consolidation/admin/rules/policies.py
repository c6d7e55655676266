"""Policies: what may be proposed and applied where. Read by everybody it concerns, changed by stewards (R32).

A change is shown before it is saved, and saved only onto the version it was shown against.
"""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import revising
from consolidation.admin.rules.policy_editing import Editing
from consolidation.admin.rules.policy_questions import ask
from consolidation.admin.rules.policy_reading import concerning, holding, matching, meant, page, row_of, versions
from consolidation.admin.rules.policy_words import differences
from consolidation.models import Policy
from consolidation.operations import visible
from observations.admin.base import Reach, ReadOnlyAdmin, Screen, signed_in
from observations.admin.listing import listing
from observations.admin.worded import at

ADD: Final = "consolidation.add_policy"
CHANGE: Final = "consolidation.change_policy"
REMOVE: Final = "consolidation.delete_policy"
LISTED: Final = 500  # policies in the list; one per family of scopes is usual
_PAGES: Final = "admin/consolidation/policy"


class PolicyScreen(Screen):
    """The list, one policy, its form and its history; which policy holds for a scope; the four questions."""

    def extra_urls(self) -> list[URLPattern]:
        """Everything but the list and the page of one policy."""
        return [
            path("new/", self.guarded(self.new_view, ADD), name=self.url_name("new")),
            path("questions/", self.guarded(self.questions_view, ADD), name=self.url_name("questions")),
            path("holds/<int:pk>/", self.guarded(self.holds_view), name=self.url_name("holds")),
            path("<int:pk>/edit/", self.guarded(self.edit_view, CHANGE), name=self.url_name("edit")),
            path("<int:pk>/versions/", self.guarded(self.versions_view), name=self.url_name("versions")),
            path("<int:pk>/remove/", self.guarded(self.remove_view, REMOVE), name=self.url_name("remove")),
        ]

    # --- looking

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """The policies that concern this person, and which of them holds for each scope."""
        reach = Reach.of(request)
        mine = reach.where(CHANGE)
        found = concerning(reach).order_by("pattern")[:LISTED]
        scopes = listing(reach.scopes.order_by("name"), data=request.GET, size=50)
        context = {
            "title": "Policies",
            "rows": [row_of(row, yours=mine.covers(row.pattern)) for row in found],
            "page": scopes,
            "holds": holding(scopes.rows),
            "may_add": reach.may(ADD),
        }
        return self.render(request, f"{_PAGES}/change_list.html", context)

    def _visible(self, request: HttpRequest, pk: int) -> tuple[Policy, Reach]:
        reach = Reach.of(request)
        return get_object_or_404(concerning(reach), pk=pk), reach

    def _own(self, request: HttpRequest, pk: int) -> tuple[Policy, Reach]:
        policy, reach = self._visible(request, pk)
        if not reach.covers(policy.pattern):
            raise PermissionDenied(
                "This policy holds for scopes that you were not given, or where your role does not allow it."
            )
        return policy, reach

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Every setting of one policy, and where it holds."""
        policy, reach = self._visible(request, pk)
        groups, broken = page(policy)
        scopes, count = meant(policy, reach=reach)
        context = {
            "title": f"Policy of {visible(policy.pattern)}",
            "policy": row_of(policy, yours=reach.where(CHANGE).covers(policy.pattern)),
            "groups": groups,
            "broken": broken,
            "scopes": scopes,
            "count": count,
            "may_remove": reach.where(REMOVE).covers(policy.pattern),
        }
        return self.render(request, f"{_PAGES}/change_form.html", context)

    def versions_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Every version with what it changed, who and when."""
        policy, reach = self._visible(request, pk)
        context = {
            "title": f"History of {visible(policy.pattern)}",
            "policy": row_of(policy, yours=reach.where(CHANGE).covers(policy.pattern)),
            "versions": versions(policy.pattern),
        }
        return self.render(request, f"{_PAGES}/versions.html", context)

    def holds_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Which policy holds for one scope, and why that one."""
        reach = Reach.of(request)
        scope = get_object_or_404(reach.scopes, pk=pk)
        found = matching(scope)
        held = Policy.objects.filter(pk=found[0].pk).first() if found else None
        groups, broken = page(held or Policy(pattern="", body={}))
        context = {
            "title": f"What holds for {visible(scope.name)}",
            "scope": {"pk": scope.pk, "name": visible(scope.name)},
            "matches": found,
            "own": any(match.pattern == visible(scope.name) for match in found),
            "groups": groups,
            "broken": broken,
            "may_add": reach.may(ADD, scope=scope),
        }
        return self.render(request, f"{_PAGES}/holds.html", context)

    # --- writing

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """A policy for a pattern that has none, beginning with what holds there now."""
        reach, pattern = Reach.of(request), ""
        if request.method == "POST":
            pattern = request.POST.get("pattern", "").replace("\0", "").strip()[:200]
        elif (asked := request.GET.get("scope", "")).isascii() and asked.isdigit() and len(asked) < 19:
            pattern = get_object_or_404(reach.scopes, pk=int(asked)).name
        return Editing(self, request, None, pattern).answer()

    def edit_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Change a policy; `?version=` begins with an older version instead of the newest."""
        policy, _ = self._own(request, pk)
        return Editing(self, request, policy, policy.pattern).answer()

    def remove_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """First what would hold then; asked again, the policy is removed. Its versions stay."""
        policy, reach = self._own(request, pk)
        if request.method == "POST" and request.POST.get("version") == str(policy.version):
            return self._remove(request, policy)
        after = revising.wider(pattern=policy.pattern, own=False)
        scopes, count = meant(policy, reach=reach)
        context = {
            "title": f"Remove the policy of {visible(policy.pattern)}",
            "policy": row_of(policy, yours=True),
            "after": visible(after.pattern) if after else "",
            "changed": differences(policy.body, after.body if after else {}),
            "scopes": scopes,
            "count": count,
        }
        return self.render(request, f"{_PAGES}/remove.html", context)

    def _remove(self, request: HttpRequest, policy: Policy) -> HttpResponse:
        try:
            revising.remove(pattern=policy.pattern, by=signed_in(request).get_username(), version=policy.version)
        except revising.Conflict as conflict:
            messages.error(request, visible(str(conflict)))
        else:
            messages.success(request, f"The policy of {visible(policy.pattern)} is removed; its versions are kept.")
        return redirect(f"admin:{self.url_name('changelist')}")

    def questions_view(self, request: HttpRequest) -> HttpResponse:
        """The four questions; the answers become the policy of a scope or a pattern."""
        return ask(self, request)


class VerdictAdmin(ReadOnlyAdmin):
    """Pairs that people told apart."""

    lead = "Pairs that people told apart. Planning does not propose them again."
    nothing = "No pair was told apart. Marking an item of the review queue distinct leaves its pair here."
    list_display = ("__str__", "scope", "low_id", "high_id", "by", at("at", "when"), "operation")
    fields = readonly_fields = ("scope", "low_id", "high_id", "by", at("at", "when"), "operation")
    list_select_related = ("scope",)
