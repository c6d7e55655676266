"""What every screen shares: nothing is added, changed or deleted here, and nobody sees a scope they were not given.

`Screen` is for models whose pages are our own views; `ReadOnlyAdmin` shows the rest in Django's own lists. Both leave
out `delete_selected`, `list_editable`, the history view and every look-up that was not declared (INTEGRITY part 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

from observations.models import Scope, ScopeAccess, ScopeQuerySet

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
    """What one signed-in person may see."""

    scopes: ScopeQuerySet
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, request: HttpRequest) -> Reach:
        """The reach of the person who asks, read once per request. Two queries, none for a superuser."""
        known = _reaches.get(request)
        if known is None:
            known = _reaches[request] = cls._read(signed_in(request))
        return known

    @classmethod
    def _read(cls, user: User) -> Reach:
        patterns: tuple[str, ...] = ("*",)
        if not user.is_superuser:
            patterns = tuple(ScopeAccess.objects.filter(user_id=user.pk).values_list("pattern", flat=True))
        return cls(scopes=Scope.objects.visible_to(user), patterns=patterns)

    @property
    def everything(self) -> bool:
        """True when no scope is hidden from this person."""
        return "*" in self.patterns

    def covers(self, pattern: str) -> bool:
        """True when every scope a pattern means, now or later, is visible."""
        return any(
            mine in ("*", pattern) or (mine.endswith("/*") and pattern.startswith(mine[:-1])) for mine in self.patterns
        )

    def rows(self, queryset: QuerySet[M]) -> QuerySet[M]:
        """The rows of visible scopes; rows that belong to no scope only for those who see everything. No query."""
        mine = Q(scope__in=self.scopes)
        return queryset.filter(mine | Q(scope__isnull=True) if self.everything else mine)


_reaches: WeakKeyDictionary[HttpRequest, Reach] = WeakKeyDictionary()


def signed_in(request: HttpRequest) -> User:
    """The person behind a request that `admin_view` let through."""
    user = request.user
    if not user.is_authenticated:
        raise PermissionDenied("Sign in first.")
    return user


def require(request: HttpRequest, *permissions: str) -> None:
    """Raises PermissionDenied (403) unless the person has every permission."""
    if not signed_in(request).has_perms(permissions):
        raise PermissionDenied("Your account may read this, not do it.")


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


class ReadOnlyAdmin(Shut):
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

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, by its name."""
        title = str(self.opts.verbose_name_plural).capitalize()
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

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
