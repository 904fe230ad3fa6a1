"""The calls about conversations, and what an agent learns from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import shapes
from .caller import Caller, place

if TYPE_CHECKING:
    from .caller import Json


class ConversationCalls(Caller):
    """The calls about texts, conversations, sessions, experiences and the agent's own files."""

    # Texts and conversations

    def distill(self, text: str, **options: Json) -> shapes.distill.DistilledText:
        """The facts of a text; options are of `DistilBody`."""
        body = {"text": text, **options}
        return self.ask(shapes.distill.DistilledText, "POST", "/api/distill", body=body)

    def distill_all(self, texts: Sequence[str], **options: Json) -> shapes.distill.DistilledTexts:
        """The same for up to 50 texts."""
        body = {"texts": [*texts], **options}
        return self.ask(shapes.distill.DistilledTexts, "POST", "/api/distill", body=body)

    def observe(
        self, conversation: str, turns: Sequence[Mapping[str, Json]] | None = None, **options: Json
    ) -> shapes.observe.Observed:
        """Report what was said; after a pause the facts in it are stored.

        When this returns, the turns are on the disk.

        Args:
            conversation: any name; the same for all its turns.
            turns: up to 500 `TurnBody`, in their order.
            **options: of `ObserveBody`: `messages` or `text` in place of `turns`; `end` makes it
                an episode, `wait` reads it at once.
        """
        given = {} if turns is None else {"turns": [*turns]}
        body = {"conversation": conversation, **given, **options}
        return self.ask(shapes.observe.Observed, "POST", "/api/observe", body=body)

    def turns(self, conversation: str, **talk: Json) -> shapes.observe.TurnsStored:
        """Store the `turns`, `messages` or `text` of a conversation, as they are; see `Talk`."""
        body = {"conversation": conversation, **talk}
        return self.ask(shapes.observe.TurnsStored, "POST", "/api/turns", body=body)

    def compact(
        self, messages: Sequence[Mapping[str, Json]], **options: Json
    ) -> shapes.compact.CompactedMessages:
        """Fit a conversation into a model's window again; options are of `CompactBody`."""
        body = {"messages": [*messages], **options}
        return self.ask(shapes.compact.CompactedMessages, "POST", "/api/compact", body=body)

    def graph(
        self, entity: str | None = None, depth: int = 2, limit: int = 20
    ) -> shapes.graph.Graph:
        """An entity and what is up to `depth` relations away; without one, the best known."""
        wanted = {"entity": entity, "depth": depth} if entity else {"limit": limit}
        return self.ask(shapes.graph.Graph, "GET", "/api/graph", wanted)

    def change_entity(self, name: str, **changes: Json) -> shapes.graph.EntityView:
        """Set the `type` or the `aliases` of an entity."""
        return self.ask(shapes.graph.EntityView, "PUT", place("/api/graph", name), body=changes)

    def metadata(self, text: str) -> shapes.memory.MetadataFound:
        """The URLs, commands and paths in a text, which is not stored."""
        return self.ask(shapes.memory.MetadataFound, "POST", "/api/metadata", body={"text": text})

    def validate(self, **note: Json) -> shapes.upkeep.Validated:
        """What a note lacks: today's, or that of `ValidateBody`."""
        return self.ask(shapes.upkeep.Validated, "POST", "/api/validate", body=note)

    # Files of the agent's own

    def reflections(self, **which: Json) -> shapes.own_files.ReflectionPage:
        """What the agent has learned, newest first; options are of `ReflectionQuery`."""
        return self.ask(shapes.own_files.ReflectionPage, "GET", "/api/reflections", which)

    def reflect(self, **reflection: Json) -> shapes.own_files.ReflectionStored:
        """Add a reflection: the fields of `ReflectionBody`."""
        path = "/api/reflections"
        return self.ask(shapes.own_files.ReflectionStored, "POST", path, body=reflection)

    def episodes(self, **which: Json) -> shapes.own_files.EpisodePage:
        """What conversations came to, newest first; options are of `EpisodeQuery`."""
        return self.ask(shapes.own_files.EpisodePage, "GET", "/api/episodes", which)

    def add_episode(self, **episode: Json) -> shapes.own_files.EpisodeStored:
        """Add an episode: the fields of `EpisodeBody`."""
        return self.ask(shapes.own_files.EpisodeStored, "POST", "/api/episodes", body=episode)

    def skills(self, limit: int = 100, offset: int = 0) -> shapes.own_files.SkillPage:
        """The skills, without their texts."""
        wanted = {"limit": limit, "offset": offset}
        return self.ask(shapes.own_files.SkillPage, "GET", "/api/skills", wanted)

    def skill(self, skill_id: str) -> shapes.own_files.SkillView:
        """A skill with its text."""
        return self.ask(shapes.own_files.SkillView, "GET", place("/api/skills", skill_id))

    def add_skill(self, **skill: Json) -> shapes.own_files.SkillStored:
        """Write a skill: the fields of `SkillBody`."""
        return self.ask(shapes.own_files.SkillStored, "POST", "/api/skills", body=skill)

    def knowledge(self, *, fold: bool = False) -> shapes.own_files.KnowledgeView:
        """The knowledge; `fold` proposes what could go while it is too long."""
        return self.ask(shapes.own_files.KnowledgeView, "GET", "/api/knowledge", {"fold": fold})

    # Sessions

    def sessions(self, **which: Json) -> shapes.sessions.SessionPage:
        """The sessions, newest first; options are of `SessionQuery`."""
        return self.ask(shapes.sessions.SessionPage, "GET", "/api/sessions", which)

    def start_session(self, **fields: Json) -> shapes.sessions.SessionView:
        """Open a session: the fields of `SessionBody`."""
        return self.ask(shapes.sessions.SessionView, "POST", "/api/sessions", body=fields)

    def session(self, session_id: str) -> shapes.sessions.SessionView:
        """A session."""
        return self.ask(shapes.sessions.SessionView, "GET", place("/api/sessions", session_id))

    def archive_session(self, session_id: str) -> shapes.sessions.SessionView:
        """Close a session."""
        path = place("/api/sessions", session_id) + "/archive"
        return self.ask(shapes.sessions.SessionView, "POST", path)

    def reopen_session(self, session_id: str) -> shapes.sessions.SessionView:
        """Open a session again."""
        path = place("/api/sessions", session_id) + "/reopen"
        return self.ask(shapes.sessions.SessionView, "POST", path)

    def session_used(self, session_id: str, **which: Json) -> shapes.sessions.UsedPage:
        """What went into the answers of a session; options are of `UsedQuery`."""
        path = place("/api/sessions", session_id) + "/used"
        return self.ask(shapes.sessions.UsedPage, "GET", path, which)

    def replay_session(self, session_id: str, **which: Json) -> shapes.sessions.Replayed:
        """What has changed since the answers of a session; options are of `UsedQuery`."""
        path = place("/api/sessions", session_id) + "/replay"
        return self.ask(shapes.sessions.Replayed, "GET", path, which)

    # Experiences

    def experiences(self, **which: Json) -> shapes.experiences.ExperiencePage:
        """The experiences of most weight; options are of `ExperienceQuery`."""
        return self.ask(shapes.experiences.ExperiencePage, "GET", "/api/experiences", which)

    def similar_experiences(
        self, intent: str, tags: Sequence[str] = (), limit: int = 5
    ) -> shapes.experiences.SimilarExperiences:
        """The experiences with a similar intent."""
        query = {"q": intent, "tags": ",".join(tags) or None, "limit": limit}
        path = "/api/experiences/search"
        return self.ask(shapes.experiences.SimilarExperiences, "GET", path, query)

    def add_experience(self, **experience: Json) -> shapes.experiences.ExperienceView:
        """Store an experience: the fields of `ExperienceBody`."""
        path = "/api/experiences"
        return self.ask(shapes.experiences.ExperienceView, "POST", path, body=experience)

    def experience(self, experience_id: str) -> shapes.experiences.ExperienceView:
        """An experience, pruned or not."""
        path = place("/api/experiences", experience_id)
        return self.ask(shapes.experiences.ExperienceView, "GET", path)

    def use_experience(self, experience_id: str) -> shapes.experiences.ExperienceView:
        """Count a use, after which it has its full weight."""
        path = place("/api/experiences", experience_id) + "/use"
        return self.ask(shapes.experiences.ExperienceView, "POST", path)

    def delete_experience(self, experience_id: str) -> shapes.experiences.ExperienceDeleted:
        """Delete an experience for good."""
        path = place("/api/experiences", experience_id)
        return self.ask(shapes.experiences.ExperienceDeleted, "DELETE", path)

    def prune_experiences(self, **options: Json) -> shapes.experiences.Pruned:
        """Take what has faded out of recall; options are of `PruneBody`."""
        return self.ask(shapes.experiences.Pruned, "POST", "/api/experiences/prune", body=options)

    def experience_stats(self) -> shapes.experiences.ExperienceStats:
        """How many experiences there are, by type."""
        return self.ask(shapes.experiences.ExperienceStats, "GET", "/api/experiences/stats")

    def observe_experiences(
        self, conversation: str, **talk: Json
    ) -> shapes.observe.ExperiencesObserved:
        """Store what of a conversation is an experience: the fields of `Talk`."""
        body = {"conversation": conversation, **talk}
        path = "/api/experiences/observe"
        return self.ask(shapes.observe.ExperiencesObserved, "POST", path, body=body)

    def preferences(self, **which: Json) -> shapes.experiences.PreferencePage:
        """What users prefer; options are of `PreferenceQuery`."""
        return self.ask(shapes.experiences.PreferencePage, "GET", "/api/preferences", which)

    def prefer(
        self, category: str, value: str, user: str = ""
    ) -> shapes.experiences.PreferenceView:
        """Store what a user prefers; told again, it is surer."""
        body = {"category": category, "value": value, "user": user}
        return self.ask(shapes.experiences.PreferenceView, "POST", "/api/preferences", body=body)
