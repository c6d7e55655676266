"""What every screen shares: nothing is added, changed or deleted here, and nobody sees a scope they were not given.

`Screen` is for models whose pages are our own views; `ReadOnlyAdmin` shows the rest in Django's own lists. Both leave
out `delete_selected`, `list_editable`, the history view and every look-up that was not declared (INTEGRITY part 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import cached_property

from observations.admin.worded import Worded
from observations.models import Scope, ScopeAccess, ScopeQuerySet
from observations.roles import EVERYTHING, Access, deciding, means

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    ModelAdmin = admin.ModelAdmin[Model]
    ModelPaginator = Paginator[Model]
else:
    ModelAdmin = admin.ModelAdmin
    ModelPaginator = Paginator

M = TypeVar("M", bound=Model)
COUNTED = (
    10_000  # a list is counted this far and no further: an exact count of a million rows takes longer than its page
)
SCOPES_OFFERED = 200  # in a filter; further ones are reached from the list of scopes


@dataclass(frozen=True, slots=True)
class Reach:
    """What one signed-in person may see and do, scope by scope: their groups, and the role of each of their patterns.

    `given` are their patterns; `demanded` what has to be allowed in a scope for it to be in `scopes`.
    """

    user: User
    scopes: ScopeQuerySet
    given: tuple[Access, ...]
    demanded: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: HttpRequest) -> Reach:
        """The reach of the person who asks, read once per request: the scopes they may see, or, once something was
        required, those where they may do it. Two queries, none for a superuser.
        """
        known = _reaches.get(request)
        if known is None:
            known = _reaches[request] = cls._read(signed_in(request))
        return known

    @classmethod
    def seen_by(cls, request: HttpRequest) -> Reach:
        """All that the person who asks may see, whatever was required."""
        reach = cls.of(request)
        return reach.where() if reach.demanded else reach

    @classmethod
    def _read(cls, user: User) -> Reach:
        if user.is_superuser:
            return cls(user=user, scopes=Scope.objects.visible_to(user), given=(Access(EVERYTHING),))
        rows = ScopeAccess.objects.filter(user_id=user.pk).order_by("pk").values_list("pattern", "role")
        given = tuple(Access(pattern, role) for pattern, role in rows)
        return cls(user=user, scopes=Scope.objects.meant_by(each.pattern for each in given), given=given)

    def where(self, *permissions: str) -> Reach:
        """The part of it in which this person may do all of this; without any, what they may see. Two queries the
        first time.
        """
        if self.user.is_superuser:
            return self
        if not self.user.has_perms(permissions):
            return replace(self, scopes=Scope.objects.none(), given=(), demanded=permissions)
        scopes = Scope.objects.where(given=self.given, permissions=permissions)
        return replace(self, scopes=scopes, demanded=permissions)

    def may(self, *permissions: str, scope: Scope | str | None = None) -> bool:
        """Whether this person may do all of this in a scope (its row or its name); without one, anywhere at all. Two
        queries the first time.
        """
        if not self.user.has_perms(permissions):
            return False
        if scope is None:
            return not self.given or any(each.allows(permissions) for each in self.given)
        found = deciding(given=self.given, what=str(scope))
        return found is not None and found.allows(permissions)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns this person was given, but those in which they may not do what is demanded."""
        return tuple(each.pattern for each in self.given if each.allows(self.demanded))

    @property
    def excepted(self) -> tuple[str, ...]:
        """The patterns in which this person may not do what is demanded."""
        return tuple(each.pattern for each in self.given if not each.allows(self.demanded))

    @property
    def everything(self) -> bool:
        """True when no scope is left out of it."""
        return self.covers(EVERYTHING)

    def covers(self, pattern: str) -> bool:
        """True when every scope a pattern means, now or later, is in it."""
        found = deciding(given=self.given, what=pattern)
        if found is None or not found.allows(self.demanded):
            return False
        return not any(means(pattern=pattern, what=exception) for exception in self.excepted)

    def covering(self, field: str) -> Q:
        """The rule of `covers` for the pattern that a column holds. No query."""
        if self.everything:
            return Q()
        mine = Q(pk__in=[])
        for each in self.given:
            if each.allows(self.demanded):
                narrower = [other for other in self.excepted if means(pattern=each.pattern, what=other)]
                mine |= _within(field, each.pattern) & ~_any(_within(field, other) for other in narrower)
        around = {"*", *(wider for other in self.excepted for wider in _around(other))}
        return mine & ~Q(**{f"{field}__in": sorted(around)}) if self.excepted else mine

    def rows(self, queryset: QuerySet[M]) -> QuerySet[M]:
        """The rows of its scopes; rows that belong to no scope only for those who see everything. No query."""
        mine = Q(scope__in=self.scopes)
        return queryset.filter(mine | Q(scope__isnull=True) if self.everything else mine)


def _within(field: str, pattern: str) -> Q:
    """The rows whose pattern lies within another."""
    if pattern == EVERYTHING:
        return Q(**{f"{field}__isnull": False})
    inside = Q(**{field: pattern})
    return inside | Q(**{f"{field}__startswith": pattern[:-1]}) if pattern.endswith("/*") else inside


def _any(conditions: Iterable[Q]) -> Q:
    found = Q(pk__in=[])
    for condition in conditions:
        found |= condition
    return found


def _around(pattern: str) -> list[str]:
    """The patterns that mean everything a pattern means, and more."""
    parts = pattern.removesuffix("/*").split("/")
    return ["/".join([*parts[:length], "*"]) for length in range(1, len(parts))]


_reaches: WeakKeyDictionary[HttpRequest, Reach] = WeakKeyDictionary()
MAY_NOT = "Your account may read this, not do it."


def signed_in(request: HttpRequest) -> User:
    """The person behind a request that `admin_view` let through."""
    user = request.user
    if not user.is_authenticated:
        raise PermissionDenied("Sign in first.")
    return user


def require(request: HttpRequest, *permissions: str, scope: Scope | None = None) -> None:
    """Raises PermissionDenied (403) unless the person has every permission: in `scope`, or without one in some scope.

    From here on `Reach.of(request)` is the part in which they have them: rows of other scopes are not there. So an
    action that looks its rows up afterwards cannot reach what the person may only read.
    """
    reach = Reach.seen_by(request)
    if not reach.may(*permissions):
        raise PermissionDenied(MAY_NOT)
    if scope is not None and not reach.may(*permissions, scope=scope):
        raise PermissionDenied("Your role in this scope lets you read this, not do it.")
    if permissions:
        _reaches[request] = reach.where(*{*Reach.of(request).demanded, *permissions})


class CappedPaginator(ModelPaginator):
    """Counts at most COUNTED rows, which a list of any length answers from its index."""

    @cached_property
    def count(self) -> int:
        """Rows found, up to COUNTED."""
        rows = self.object_list
        return rows[:COUNTED].count() if isinstance(rows, QuerySet) else len(rows)


class Shut(ModelAdmin):
    """No way to write through Django's forms, whatever permissions somebody was given by mistake."""

    actions: ClassVar[Sequence[Callable[..., Any] | str] | None] = None  # type: ignore[misc]
    list_editable = ()
    view_on_site = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: memory is written by its store, decisions by the review."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """By Django's own view permission, which the groups give."""
        return signed_in(request).has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")

    def url_name(self, page: str) -> str:
        """The name Django gives a page of this model."""
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"


class Screen(Shut):
    """A model shown by our own pages: `list_view`, and `page_view` when `has_page`."""

    has_page: ClassVar[bool] = True

    def get_urls(self) -> list[URLPattern]:
        """Our pages and nothing else: no add, delete, history or look-up."""
        urls = [path("", self.guarded(self.list_view), name=self.url_name("changelist")), *self.extra_urls()]
        if self.has_page:
            urls.append(path("<int:pk>/", self.guarded(self.page_view), name=self.url_name("change")))
        return urls

    def extra_urls(self) -> list[URLPattern]:
        """Further pages, before the page of one row."""
        return []

    def guarded(self, view: Callable[..., HttpResponse], *permissions: str) -> Callable[..., HttpResponse]:
        """A view behind the login, the view permission of this model and any further permissions."""

        def inner(request: HttpRequest, **arguments: Any) -> HttpResponse:
            if not self.has_view_permission(request):
                raise PermissionDenied("Your account may not read this.")
            require(request, *permissions)
            return view(request, **arguments)

        inner.__name__ = getattr(view, "__name__", "view")
        return self.admin_site.admin_view(inner)

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """The list; a screen that has none is not there."""
        raise Http404

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One row; a screen whose rows have no page is not there."""
        raise Http404

    def render(
        self, request: HttpRequest, template: str, context: Mapping[str, object], *, status: int = 200
    ) -> TemplateResponse:
        """A page with what every admin page carries."""
        whole = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, template, whole, status=status)


class ReadOnlyAdmin(Worded, Shut):
    """Django's own list and detail page, to look at. Every row is of a visible scope."""

    paginator = CappedPaginator
    show_full_result_count = False
    list_max_show_all = 0
    list_per_page = 50
    sortable_by = ()
    change_form_template = "admin/palimpsest/plain_form.html"
    search_fields = ()  # a search would put what was typed into the address
    filters: ClassVar[tuple[str, ...]] = ()  # fields with declared choices, by which the list may be narrowed

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Scoped, newest first."""
        return Reach.of(request).rows(super().get_queryset(request)).order_by("-pk")

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: object, object_id: str) -> HttpResponse:
        """A row of another scope is not there, exactly as one that does not exist."""
        raise Http404

    def get_list_filter(self, request: HttpRequest) -> tuple[str, ...]:
        """Only declared choices: no filter that lists what other scopes hold."""
        return self.filters

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Closed: `?text__startswith=` would read what the page hides."""
        return lookup.removesuffix("__exact").removesuffix("__isnull") in self.filters

    def get_urls(self) -> list[URLPattern]:
        """The list and the page of one row."""
        kept = {self.url_name("changelist"), self.url_name("change")}
        return [url for url in super().get_urls() if getattr(url, "name", None) in kept]
