import { any, pattern, rulesOf } from './rule.ts'

const moment = any(
  'when, whenever, each time, every time, any time, if, before, after, while, once, as soon as, for every',
)
const alter = any(
  'replaced?, changed?, modify, modified, altered?, rewrite, redirect, substituted?, rerouted?, swap, split off',
)

/** Fields that decide where something is sent, or on whose behalf. */
const part = any(
  'recipients?, addressee, receiver, payee, beneficiary, iban, author, phone number, destination address',
)

/** Detect instructions that interfere with other tools. */
export const shadowingRules = rulesOf('shadowing', [
  {
    pattern: pattern`\b${moment}\b.{0,80}\b(?:NAME|tool|e-?mail|transfers?|payment|whatsapp)\b.{0,120}\b(?:${alter}|set to|must be set|has to be)\b.{0,60}\b${part}\b|\b${moment}\b.{0,80}\b(?:NAME|tool|e-?mail)\b.{0,120}\b${part}\b.{0,40}\b(?:${alter}|set to|must be set|has to be)\b`,
    unless: /\bthis tool\b|\breturns an error\b/u,
  },
  {
    pattern: pattern`\b(?:modify|change|alter|rewrite|replace|redirect) (?:the )?(?:arguments?|parameters?|recipients?|results?|outputs?|inputs?|calls?) (?:of|to|from|for|in) (?:\w+ )?(?:every|all|any|other|each|another)\b|\bsplit off\b.{0,40}\b(?:account|transfer)\b`,
  },
  {
    pattern: pattern`\b(?:NAME \S+|tools?|servers?|functions?)\b.{0,50}\b(?:is|are|was|were|has been|have been)(?: now)? (?:deprecated|broken|unsafe|defective|compromised|malicious|insecure|unreliable|outdated|dangerous|faulty|infected|vulnerable|obsolete)\b`,
    near: /\b(?:use this (?:tool|one|server)|through this tool|this tool instead|call me instead|use me|do not use any tool)\b/u,
    unless: /^this\b|\bthis (?:tool|one) (?:is|has been)\b/u,
  },
  {
    pattern: pattern`\b(?:all|every|any|each) (?:calls?|requests?|invocations?|quer(?:y|ies)|messages?)\b.{0,12}\b(?:meant|intended|destined|addressed)\b.{0,60}\b(?:routed?|redirect(?:ed)?|go|sent|passed?|forwarded|directed)\b.{0,20}\b(?:here|through (?:this|it)|to (?:this|me)|this tool)\b|\b(?:another|other) tools?\b.{0,60}\b(?:pass|send|forward|copy)\b.{0,20}\b(?:inputs?|outputs?|arguments?|results?|errors?)\b.{0,20}\b(?:to (?:this tool|me)|here)\b`,
  },
  {
    pattern: pattern`\b(?:call|run|invoke|use|execute) (?:the )?NAME \w*(?:disable|turn_off|stop|wipe|grant|elevate|bypass)\w*_?(?:log|audit|alarm|firewall|auth|security|guard|safety|monitor|backup|protection|admin|root|access)`,
  },
])
