"""The look of the lift's page: light and dark, on a phone, on a screen and on paper, with nothing to fetch."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d8dee4;--with:#0b5cad;--without:#a44a00;
--helps:#0f6b62;--harms:#b42318;--open:#57606a}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e8ea;--soft:#a3adb8;--rule:#343b43;
--with:#6cb0ff;--without:#f0a04b;--helps:#4fd1b8;--harms:#ff8f80;--open:#a3adb8}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:66rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0}
h2{font-size:1.2rem;margin:2.2rem 0 .5rem}
p,ul{max-width:46rem;margin:.5rem 0}
.soft{color:var(--soft)}
.answer{font-size:1.25rem;padding:.2rem 0 .2rem .8rem;border-left:.35rem solid var(--open)}
.answer.helps{border-color:var(--helps)}
.answer.harms{border-color:var(--harms)}
figure{margin:0;max-width:34rem;break-inside:avoid;display:flex;flex-direction:column;justify-content:space-between}
figcaption{font-weight:600}
figcaption span{font-weight:400;color:var(--soft)}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--ink);font-size:13px;font-family:inherit}
svg text.soft{fill:var(--soft)}
svg .name{paint-order:stroke;stroke:var(--paper);stroke-width:5px;stroke-linejoin:round}
svg text.helps{fill:var(--helps)}
svg text.harms{fill:var(--harms)}
svg text.open{fill:var(--soft)}
line.scale{stroke:var(--rule);stroke-width:1}
line.zero{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:2 3}
path,line{fill:none;stroke-linecap:round;stroke-linejoin:round}
.with{stroke:var(--with);stroke-width:2.5}
.without{stroke:var(--without);stroke-width:2.5;stroke-dasharray:7 5}
line.thin{stroke-width:1.5}
line.thick{stroke-width:5}
line.helps{stroke:var(--helps)}
line.harms{stroke:var(--harms)}
line.open{stroke:var(--open)}
.mark{stroke:var(--paper);stroke-width:1.5}
.mark.helps{fill:var(--helps)}
.mark.harms{fill:var(--harms)}
.mark.open{fill:var(--open)}
h3{font-size:1rem;margin:1rem 0 .2rem}
.treatment>summary,.row{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,22.5rem);gap:.1rem 1rem;
align-items:center;margin:0;padding:.3rem 0 .3rem 1.2rem;border-bottom:1px solid var(--rule);position:relative}
.ruler{border:0;padding-bottom:0}
.ruler svg text{fill:var(--soft)}
.treatment>summary::before{content:"▸";position:absolute;left:.1rem;top:.3rem;color:var(--soft)}
.treatment[open]>summary::before{content:"▾"}
.treatment>summary::-webkit-details-marker{display:none}
.inside{margin-left:1.2rem}
span.helps{color:var(--helps)}
span.harms{color:var(--harms)}
span.open{color:var(--soft)}
.content{white-space:pre-line;border-left:.2rem solid var(--rule);padding-left:.8rem}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.5rem 0;font-size:.9rem}
dt{color:var(--soft)}
dd{margin:0}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;overflow-wrap:normal}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{text-align:right;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
th:first-child,.text{text-align:left}
td:not(.text){white-space:nowrap}
tbody th{font-weight:400;min-width:9rem;max-width:26rem;overflow-wrap:anywhere}
thead th{color:var(--soft);font-weight:600}
tr.helps td:last-child{color:var(--helps);font-weight:600}
tr.harms td:last-child{color:var(--harms);font-weight:600}
summary{cursor:pointer;margin:.8rem 0}
summary:focus-visible,.wide:focus-visible{outline:2px solid var(--with);outline-offset:2px}
@media (max-width:40em){svg text{font-size:16px}.forest svg text{font-size:13px}
.treatment>summary,.row{grid-template-columns:minmax(0,1fr)}dl{grid-template-columns:minmax(0,1fr)}dd{margin:0 0 .4rem}
.inside{margin-left:.5rem}
.wide thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.wide table,.wide tbody,.wide tr,.wide caption,.wide tbody th,.wide td{display:block}
.wide tr{border-bottom:1px solid var(--rule);padding:.4rem 0}.wide tbody th,.wide td{border:0;padding:.05rem 0}
.wide tbody th{font-weight:600;max-width:none}.wide td:empty{display:none}
.wide td,.wide td:not(.text){text-align:left;white-space:normal}
.wide td::before{content:attr(data-name)": ";color:var(--soft);font-weight:400}}
@media print{body{max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}table{font-size:8pt}
thead{display:table-header-group}tr{break-inside:avoid}h2{break-after:avoid}details.numbers{display:none}}
"""
