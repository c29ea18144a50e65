"""x"""
from culturekit.pipeline.filter_stage import filter_stage
from dataclasses import dataclass
@dataclass
class FilterRun:
    candidates:object; concepts:object; judge:str; out:object; graph:object; llm:object
    def stage(self):
        return filter_stage(self.candidates,self.concepts,self.judge,llm=self.llm,graph=self.graph)
def ask_pilot(*a,**k): ...
def show_plan(*a,**k): ...
