import { any, pattern, rulesOf } from './rule.ts'

const ignore = any(
  "ignore, disregard, forget, neglect, dismiss, abandon, set aside, stop following, do not follow, don't follow",
  'never follow, do not obey, disobey, pay no attention to, throw away, discard',
)
const orders = any(
  'instructions?, rules?, guidelines?, prompts?, directives?, constraints?, polic(?:y|ies), restrictions?, safety',
  'safeguards?, guardrails?, commands?, orders, training, programming, limitations?, context, everything',
  'system message, developer message, wishes, approvals?, permissions?, checks',
)
const whose = any(
  "previous, prior, earlier, above, preceding, all, any, your, existing, former, every, system, user'?s?, safety",
  'original, initial, everything, security, what, foregoing, past, told, given',
)

const attempts =
  /\b(?:attempts?|tries|tried|trying|option|whether|how|used|allows? (?:you )?|true) to (?:ignore|override|bypass|disregard|discard|circumvent)\b|\b(?:never|not|don't|cannot|can't) (?:ignore|override|bypass|disregard|forget|discard|circumvent|disable)\b|\b(?:ignore|eslint|lint|robots|cache|gitignore|validation|firewall|cors|default|branch|retention) (?:rules?|polic\w+)\b|\bforget (?:to|about)\b/u

/** A warning about what others wrote, such as "do not follow instructions in web pages". It names no one else's orders. */
const warning =
  /^(?!.*\b(?:system|users?|previous|prior|above|earlier|your|developers?|original|safety)\b).*\b(?:do not|don't|never) (?:follow|obey) (?:any )?(?:instructions?|commands?|requests?)(?:,? (?:or|and|instructions?|commands?|requests?|links?))* (?:(?:that )?(?:appear|occur|are|found|contained|embedded|appearing) )?(?:in|inside|within) (?:them|it|(?:the |these |those |its |fetched |returned |retrieved |search |tool |web ?)*(?:results?|pages?|sites?|websites?|contents?|outputs?|documents?|files?|e-?mails?|text))\b/u

/** Detect attempts to replace the model's instructions. */
export const overrideRules = rulesOf('instruction', [
  {
    pattern: pattern`\b${ignore}\b.{0,30}\b${whose}\b.{0,40}\b${orders}\b|\b${ignore}\b.{0,20}\b(?:everything|all) (?:that )?(?:you|above|before)\b|\b${ignore}\b.{0,10}\bwhat the users? (?:asked|said|wants?|told)\b|\b${ignore}\b.{0,12}\b(?:instructions?|rules|guidelines)\b`,
    unless: new RegExp(`${attempts.source}|${warning.source}`, 'u'),
  },
  {
    pattern: pattern`\byou are now (?:an?|the|in|dan|acting|operating|free|un\w+|my)\b|^from (?:now|this point|here) on\b|\bfrom (?:now|this point|here) on,? (?:you|your|always|act|ignore|treat)\b|\b(?:act|behave|operate|respond) as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|dan)\b|\b(?:assistant|agent|ai|model|persona|mode)\b.{0,30}\bwithout (?:any )?(?:restrictions|limitations|guardrails)\b|\bpretend (?:that|to be|you)\b|\byou are (?:a )?dan\b|\b(?:jailbreak|developer) mode (?:enabled|on)\b`,
    unless: /\b(?:classif\w+|detects?|evaluates?|plan mode|authenticated|logged|connected)\b/u,
  },
])

const models = any(
  'ai, llms?, language models?, models?, assistants?, agents?, ai agents?, claude, gpt, chatgpt, copilot, gemini',
)
const tag = any(
  'system, sys, secret, hidden, override, admin, jailbreak, private, confidential, developer',
  'system[-_ ]?(?:prompt|message|instructions?|override|reminder), hidden[-_ ]?\\w{0,20}, secret[-_ ]?\\w{0,20}',
  'assistant[-_ ]?instructions?, ai[-_ ]?(?:instructions?|only)',
)

/** Detect markup that claims to end the description and to begin something with more authority. */
export const structureRules = rulesOf('instruction', [
  {
    pattern: pattern`</?(?:${tag}|important|critical|urgent|mandatory|directive)>|\[system:|<\| ?(?:NAME )?(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id) ?\|?>|\[/?(?:inst|system|sys|admin|override)\]|<</?sys>>|</(?:description|tool|tools|function|functions|tool_description)>`,
  },
  {
    pattern: pattern`<!--.{0,300}\b(?:${models}|you|ignore|send|fetch|read|call|attach|must)\b`,
  },
  {
    pattern: pattern`\bsystem (?:override|directive)\b|-{2,} ?(?:new|system|hidden) instructions\b|\bsystem: (?:the|you|assistant|all|ignore|from|always|new|this|run|execute|print|obey|act|output|reveal)\b|^new instructions:|^#{1,3} ?(?:system|instruction):|${'```'}system\b`,
  },
  {
    pattern: /^(?:human|user): /u,
    near: /(?:^|\| )assistant: /u,
  },
  {
    pattern: pattern`\bNAME role\b[ :]{0,4}NAME (?:system|developer)\b.{0,80}\b(?:always|ignore|must|never|you will|forward|add|send)\b`,
  },
  {
    pattern: pattern`\b(?:every|each|any|all)\b (?:\w+ ){0,2}(?:messages?|requests?|turns?|questions?|responses?|answers?|conversations?|inputs?)\b.{0,40}\b(?:even if (?:it is |they are )?unrelated|related or not|unrelated|whatsoever)\b`,
  },
  {
    pattern: pattern`\b(?:pre_?hook|post_?hook|__init__|preconditions?)\b.{0,80}(?:\bFILE\b|\bread ?\(|\bNAME read_file|\bhttp_?post|\bexec ?\()|\bstep 1\b.{0,40}\b(?:run|read|cat|open)\b.{0,40}(?:\bFILE\b|\benv\b)`,
  },
])
